"""Calls the tool of an MCP server on the protocol's own Python SDK. Its arguments are the server's command."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command, *args):
    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total, message])

    async with stdio_client(StdioServerParameters(command=command, args=list(args))) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            [tool] = (await session.list_tools()).tools
            request = {"request": "The ferry Skarven sails again on Monday."}
            result = await session.call_tool(tool.name, request, progress_callback=on_progress)
            refused = await session.call_tool(tool.name, {})
    results = [[result.is_error, result.content[0].text] for result in (result, refused)]
    print(json.dumps([tool.name, tool.description, results, progress]))


asyncio.run(main(*sys.argv[1:]))
