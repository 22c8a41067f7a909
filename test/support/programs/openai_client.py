"""What the OpenAI Python client makes of a gateway: each of its calls once, what came of them as JSON on the standard output.

    SLUICE_URL=http://localhost:4000/v1 SLUICE_KEY=sk_... SLUICE_LIMITED=acme/limited python openai_client.py

`SLUICE_LIMITED` names a model whose limit of requests is used up.
"""

import io
import json
import os

import openai

client = openai.OpenAI(base_url=os.environ["SLUICE_URL"], api_key=os.environ["SLUICE_KEY"], max_retries=0)
HELLO = [{"role": "user", "content": "[echo] Hello from Python"}]
SHELL = {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}, "strict": False}
seen = {"version": openai.__version__}

seen["models"] = [model.id for model in client.models.list()]

chat = client.chat.completions.create(model="sandbox/text", messages=HELLO)
seen["chat"] = [chat.choices[0].message.content, chat.usage.total_tokens > 0]

chunks = list(client.chat.completions.create(model="sandbox/text", messages=HELLO, stream=True, stream_options={"include_usage": True}))
seen["chat_stream"] = ["".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices), chunks[-1].usage.total_tokens > 0]

raw = client.responses.with_raw_response.create(
    model="sandbox/text",
    input="[think 3 hm] [echo] Hello from Python",
    tools=[{"type": "web_search"}, {"type": "namespace", "name": "crm", "description": "", "tools": []}, SHELL],
    reasoning={"effort": "low", "summary": "auto"},
)
response = raw.parse()
seen["responses"] = [response.output_text, response.output[0].summary[0].text, [tool.name for tool in response.tools], raw.headers["x-warnings"]]

with client.responses.stream(model="sandbox/text", input="[echo] Hello from Python", tools=[{"type": "web_search"}]) as stream:
    deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    seen["responses_stream"] = ["".join(deltas), stream.get_final_response().output_text]

embeddings = client.embeddings.create(model="sandbox/embedding", input=["one", "two"])
seen["embeddings"] = [len(embeddings.data), all(isinstance(number, float) for number in embeddings.data[0].embedding)]

image = client.images.generate(model="sandbox/image", prompt="A heron", size="256x256", response_format="b64_json")
seen["image"] = len(image.data[0].b64_json) > 100

with client.audio.speech.with_streaming_response.create(model="sandbox/speech", voice="alloy", input="Hello", response_format="wav") as spoken:
    sound = spoken.read()
seen["speech"] = sound[:4].decode("latin1")

file = io.BytesIO(sound)
file.name = "hello.wav"
seen["transcription"] = client.audio.transcriptions.create(model="sandbox/transcription", file=file).text

try:
    client.responses.create(model="sandbox/text", input="Hi", previous_response_id="resp_1")
except openai.BadRequestError as error:
    seen["refusal"] = [error.status_code, error.param, error.code]

try:
    openai.OpenAI(base_url=os.environ["SLUICE_URL"].removesuffix("/v1"), api_key="none", max_retries=0).chat.completions.create(
        model="sandbox/text", messages=HELLO
    )
except openai.NotFoundError as error:
    seen["wrong_base_url"] = error.message



def refusal(ask):
    try:
        ask()
        return None
    except openai.APIStatusError as error:
        return [error.status_code, error.code, type(error).__name__, "retry-after" in error.response.headers]


FORMS = {
    "chat": lambda by, **more: by.chat.completions.create(**{"model": "acme/free", "messages": HELLO} | more),
    "chat_streamed": lambda by, **more: list(by.chat.completions.create(**{"model": "acme/free", "messages": HELLO, "stream": True} | more)),
    "completions": lambda by, **more: by.completions.create(**{"model": "acme/free", "prompt": "Hi"} | more),
    "completions_streamed": lambda by, **more: list(by.completions.create(**{"model": "acme/free", "prompt": "Hi", "stream": True} | more)),
    "responses": lambda by, **more: by.responses.create(**{"model": "acme/free", "input": "Hi"} | more),
    "responses_streamed": lambda by, **more: list(by.responses.create(**{"model": "acme/free", "input": "Hi", "stream": True} | more)),
}
stranger = client.with_options(api_key="sk-none")
CHEAP = {"x-max-cost": "0.000000001"}
# After the gateway's own, the upstream's: 400, then 429.
seen["refusals"] = {
    form: [
        refusal(lambda: ask(stranger)),
        refusal(lambda: ask(client, model="acme/chat", extra_headers=CHEAP)),
        refusal(lambda: ask(client, model=os.environ["SLUICE_LIMITED"])),
        refusal(lambda: ask(client, temperature=9)),
        refusal(lambda: ask(client)),
        refusal(lambda: ask(client)),
    ]
    for form, ask in FORMS.items()
}

seen["cancelled"] = []
for form in ("chat", "completions", "responses"):
    with FORMS[form](client, model="sandbox/text", stream=True) as stream:
        next(iter(stream))
        seen["cancelled"].append(form)

print(json.dumps(seen))
