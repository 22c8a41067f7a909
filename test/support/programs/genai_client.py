"""What Google's Python client for Gemini makes of a gateway: each of its calls once, what came of them as JSON on the standard output.

    SLUICE_URL=http://localhost:4000 SLUICE_KEY=sk_... SLUICE_LIMITED=acme/limited python genai_client.py

`SLUICE_LIMITED` names a model whose limit of requests is used up.
"""

import base64
import json
import os

from google import genai
from google.genai import errors, types

options = types.HttpOptions(base_url=os.environ["SLUICE_URL"])
client = genai.Client(api_key=os.environ["SLUICE_KEY"], http_options=options)
stranger = genai.Client(api_key="bad", http_options=options)
MODEL = "sandbox/text"
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
seen = {}


def weather(city: str) -> str:
    """The weather of a city."""
    return "Rain in " + city


answer = client.models.generate_content(model=MODEL, contents="[echo] Hello", config={"system_instruction": "Be brief."})
seen["generate"] = [answer.text, answer.candidates[0].finish_reason.value, answer.usage_metadata.total_token_count > 0]

stream = client.models.generate_content_stream(model=MODEL, contents="[echo] one two")
seen["stream"] = "".join(chunk.text or "" for chunk in stream)

schema = types.Schema(type="OBJECT", properties={"count": types.Schema(type="INTEGER")}, required=["count"])
tools = [types.Tool(function_declarations=[types.FunctionDeclaration(name=name, parameters=schema) for name in ("alpha", "beta")])]
answer = client.models.generate_content(model=MODEL, contents="[tool alpha][tool beta] go", config=types.GenerateContentConfig(tools=tools))
seen["calls"] = [[call.name, call.args] for call in answer.function_calls]

chat = client.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[weather]))
seen["functions"] = "Rain in" in chat.send_message("[tool weather] go").text

picture = types.Part.from_bytes(data=PIXEL, mime_type="image/png")
seen["picture"] = client.models.generate_content(model=MODEL, contents=["[echo] picture", picture]).text

seen["count"] = client.models.count_tokens(model=MODEL, contents="Hello there").total_tokens > 0
vectors = client.models.embed_content(model="sandbox/embedding", contents=["a", "b"], config={"output_dimensionality": 4}).embeddings
seen["embed"] = [len(vector.values) for vector in vectors]
seen["get"] = client.models.get(model=MODEL).name
seen["list"] = "models/sandbox/text" in [model.name for model in client.models.list(config={"page_size": 2})]


def refusal(ask):
    try:
        ask()
        return None
    except errors.APIError as error:
        return [error.code, error.status]


def drain(by, **body):
    return list(by.models.generate_content_stream(**body))


CHEAP = {"http_options": {"headers": {"x-max-cost": "0.000000001"}}}
for name, ask in (("refusals", lambda by, **body: by.models.generate_content(**body)), ("refusals_streamed", drain)):
    seen[name] = [
        refusal(lambda: ask(stranger, model=MODEL, contents="x")),
        refusal(lambda: ask(client, model="sandbox/text-paid", contents="x", config=CHEAP)),
        refusal(lambda: ask(client, model="gemini-none", contents="x")),
        refusal(lambda: ask(client, model=os.environ["SLUICE_LIMITED"], contents="x")),
        refusal(lambda: ask(client, model=MODEL, contents="x", config={"temperature": 9})),
        # The upstream's own: 400, then 429.
        refusal(lambda: ask(client, model="acme/free", contents="x")),
        refusal(lambda: ask(client, model="acme/free", contents="x")),
    ]
seen["broken"] = refusal(lambda: drain(client, model=MODEL, contents="[error after 2][echo] a b c d"))

stream = client.models.generate_content_stream(model=MODEL, contents="[echo] one two")
seen["cancelled"] = next(stream).text
stream.close()

print(json.dumps(seen))
