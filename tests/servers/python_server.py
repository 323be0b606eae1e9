"""An MCP server as a user writes one in an afternoon: the standard library, three methods, no SDK."""
import json
import sys

TOOLS = [
    {
        "name": "count_words",
        "description": "Counts the words of a text",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
    }
]


def result_of(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "words", "version": "0.1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        words = params["arguments"]["text"].split()
        return {"content": [{"type": "text", "text": f"{len(words)} words"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    result = result_of(message["method"], message.get("params", {}))
    if result is None:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    else:
        answer["result"] = result
    print(json.dumps(answer), flush=True)
