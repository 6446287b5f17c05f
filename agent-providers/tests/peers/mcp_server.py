"""An MCP server over streamable HTTP on 127.0.0.1, of the protocol's own Python SDK. Its argument is the port."""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("peer")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def look_up(word: str) -> str:
    """Looks up a word."""
    raise ValueError(f"no such word: {word}")


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and tells how far it is."""
    for n in range(to):
        await ctx.report_progress(n + 1, to)
    return f"counted to {to}"


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
