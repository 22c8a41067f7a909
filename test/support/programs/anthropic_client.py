"""What Anthropic's Python client makes of a gateway: each of its calls once, what came of them as JSON on the standard output.

    SLUICE_URL=http://localhost:4000 SLUICE_KEY=sk_... SLUICE_MODEL=acme/claude SLUICE_LIMITED=acme/limited python anthropic_client.py

The upstream answers in the order of the calls (test/e2e/python-anthropic.test.ts). `SLUICE_LIMITED` names a model whose limit of requests
is used up.
"""

import json
import os

import anthropic

URL, MODEL, LIMITED = (os.environ["SLUICE_" + name] for name in ("URL", "MODEL", "LIMITED"))
client = anthropic.Anthropic(base_url=URL, api_key=os.environ["SLUICE_KEY"], max_retries=0)
stranger = anthropic.Anthropic(base_url=URL, api_key="sk-ant-none", max_retries=0)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HI = [{"role": "user", "content": "Hi"}]
BODY = {"model": MODEL, "max_tokens": 4000, "messages": HI}
TOOLS = [{"name": name, "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}} for name in ("alpha", "beta")]
seen = {}


def texts(message):
    return [block.text if block.type == "text" else block.type for block in message.content]


def calls(message):
    return [[block.name, block.input] for block in message.content if block.type == "tool_use"]


message = client.messages.create(**BODY)
seen["create"] = [texts(message), message.stop_reason, message.usage.output_tokens > 0, isinstance(message._request_id, str)]

with client.messages.stream(**BODY) as stream:
    text = "".join(stream.text_stream)
    seen["stream"] = [text, stream.get_final_message().stop_reason]

seen["events"] = [event.type for event in client.messages.create(**BODY, stream=True)]

seen["tools"] = calls(client.messages.create(**BODY, tools=TOOLS))

with client.messages.stream(**BODY, tools=TOOLS) as stream:
    seen["tools_streamed"] = calls(stream.get_final_message())

picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "title": "A"}
seen["files"] = texts(client.messages.create(**BODY | {"messages": [{"role": "user", "content": [picture, document]}]}))

history = list(HI)
seen["turns"] = []
for _ in range(3):
    with client.messages.stream(**BODY | {"messages": history}, tools=TOOLS, thinking={"type": "enabled", "budget_tokens": 2000}) as stream:
        message = stream.get_final_message()
    seen["turns"].append([block.type for block in message.content])
    history.append({"role": "assistant", "content": message.content})
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "42"} for block in message.content if block.type == "tool_use"]
    if results:
        history.append({"role": "user", "content": results})

seen["count"] = client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "word " * 100}]).input_tokens > 100
seen["list"] = MODEL in [model.id for model in client.models.list(limit=2)]
seen["retrieve"] = client.models.retrieve(MODEL).id

with client.messages.create(**BODY, stream=True) as stream:
    seen["cancelled"] = next(iter(stream)).type


def refusal(ask):
    try:
        ask()
        return None
    except anthropic.APIStatusError as error:
        return [error.status_code, error.body["error"]["type"], type(error).__name__, "retry-after" in error.response.headers]


def drain(by, body):
    with by.messages.stream(**body) as stream:
        return stream.get_final_message()


CHEAP = {"extra_headers": {"x-max-cost": "0.000000001"}}
for name, ask in (("refused", lambda by, body: by.messages.create(**body)), ("refused_streamed", drain)):
    seen[name] = [
        refusal(lambda: ask(stranger, BODY)),
        refusal(lambda: ask(client, BODY | CHEAP)),
        refusal(lambda: ask(client, BODY | {"model": "claude-none"})),
        refusal(lambda: ask(client, BODY | {"model": LIMITED})),
        refusal(lambda: ask(client, BODY | {"max_tokens": 0})),
        # The upstream's own: 400, then 429.
        refusal(lambda: ask(client, BODY)),
        refusal(lambda: ask(client, BODY)),
    ]

print(json.dumps(seen))
