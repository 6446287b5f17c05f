"""Checks requests against the types of the services' own clients.

    python validate_requests.py FILE

FILE holds JSON lines {"protocol", "case", "body"}, as the unit tests write them where REQUESTS_FILE names it. Needs the
packages openai, anthropic, google-genai and ollama. An unknown field is a fault, too. Exits 1 if there are faults.
"""

import json
import sys

import ollama
import pydantic
from anthropic.types.message_create_params import MessageCreateParamsStreaming as AnthropicRequest
from google.genai import types as genai
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as ChatRequest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as ResponsesRequest


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")


class OllamaRequest(ollama._types.ChatRequest):
    messages: list[ollama.Message]


class GeminiRequest(Strict):
    """The body of streamGenerateContent; the client itself has types for its parts only."""

    contents: list[genai.Content]
    systemInstruction: genai.Content | None = None
    tools: list[genai.Tool] | None = None
    toolConfig: genai.ToolConfig | None = None
    generationConfig: genai.GenerationConfig | None = None


ADAPTERS = {
    "openai": pydantic.TypeAdapter(ChatRequest),
    "openai-responses": pydantic.TypeAdapter(ResponsesRequest),
    "anthropic": pydantic.TypeAdapter(AnthropicRequest),
    "gemini": pydantic.TypeAdapter(GeminiRequest),
    "ollama": pydantic.TypeAdapter(OllamaRequest),
}

# Fields that services take and the types of their clients lack: what older models of Anthropic take, what the cases put
# into `extra`, what OpenRouter adds, what Ollama has in its Go types alone.
EXTRA = {
    "anthropic": {"temperature", "top_p"},
    "gemini": {"metadata"},
    "openai": {"reasoning_details"},
    "ollama": {"truncate", "shift", "metadata", "id", "tool_call_id", "$schema"},
}


def read(value):
    """The value in full: of a TypedDict, pydantic reads an iterable only when somebody asks for its items."""
    if isinstance(value, pydantic.BaseModel):
        return read(value.model_dump(mode="json", by_alias=True, exclude_none=True))
    if isinstance(value, dict):
        return {key: read(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) or hasattr(value, "__next__"):
        return [read(item) for item in value]
    return value


def lost(sent, got, at, extra):
    """The fields that the types do not have."""
    if isinstance(sent, dict) and isinstance(got, dict):
        for key, value in sent.items():
            if key in got:
                yield from lost(value, got[key], f"{at}.{key}", extra)
            elif key not in extra:
                yield f"unknown field {at}.{key}"
    elif isinstance(sent, list) and isinstance(got, list):
        for number, pair in enumerate(zip(sent, got)):
            yield from lost(*pair, f"{at}.{number}", extra)


def as_clients_write(protocol, body):
    """Where the types say more than the services ask for."""
    if protocol == "openai-responses":
        # An id that the service gave. It takes the model's messages without one.
        texts = [item for item in body["input"] if item.get("role") == "assistant"]
        return {**body, "input": [{"id": "msg_1", **item} if item in texts else item for item in body["input"]]}
    if protocol == "ollama":
        # Base64 on the wire, an object before.
        for message in body["messages"]:
            message["images"] = [ollama.Image(value=image) for image in message.get("images", [])]
    return body


def faults(protocol, body):
    extra = EXTRA.get(protocol, set())
    checked = {key: value for key, value in as_clients_write(protocol, body).items() if key not in extra}
    try:
        got = read(ADAPTERS[protocol].validate_python(checked))
    except pydantic.ValidationError as error:
        # Of a union, pydantic tells what is wrong with each member; the names of large unions are no help.
        for fault in error.errors()[:6]:
            place = ".".join(part for part in map(str, fault["loc"]) if len(part) < 60)
            yield f"{place}: {fault['msg']}"
    else:
        if protocol != "ollama":  # its types of tools' parameters are models that write less than they read
            yield from lost(checked, got, "body", extra)


def main():
    count, wrong = 0, 0
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            count += 1
            found = list(faults(line["protocol"], line["body"]))
            wrong += bool(found)
            for fault in found:
                print(f"{line['protocol']}, {line['case']}: {fault}")
    print(f"{count} requests, {wrong} of them faulty")
    if not count:
        sys.exit("no request was checked")
    sys.exit(1 if wrong else 0)


main()
