"""Stored responses, background responses and conversations with the OpenAI Python client, as JSON on the standard output.

    SLUICE_URL=http://localhost:4000/v1 SLUICE_KEY=sk_... python openai_stored_client.py
"""

import json
import os
import time

import openai

client = openai.OpenAI(base_url=os.environ["SLUICE_URL"], api_key=os.environ["SLUICE_KEY"], max_retries=0)
MODEL = "sandbox/text"
seen = {}


def refused(call, *args, **fields):
    try:
        call(*args, **fields)
    except openai.APIStatusError as error:
        return [error.status_code, type(error).__name__]
    return None


first = client.responses.create(model=MODEL, input="[echo] One", metadata={"topic": "numbers"})
second = client.responses.create(model=MODEL, input="[echo] Two", previous_response_id=first.id)
with client.responses.stream(model=MODEL, input="[echo] Three", previous_response_id=second.id) as stream:
    third = [event for event in stream][-1].response
seen["thread"] = [first.output_text, second.output_text, third.output_text, third.previous_response_id == second.id]
seen["retrieved"] = client.responses.retrieve(first.id) == first
seen["items"] = [item.type for item in client.responses.input_items.list(third.id, order="asc", limit=2)]
client.responses.delete(first.id)
seen["deleted"] = [refused(client.responses.retrieve, first.id), refused(client.responses.delete, first.id)]
seen["broken"] = refused(client.responses.create, model=MODEL, input="Four", previous_response_id=third.id)

begun = client.responses.create(model=MODEL, input="[echo] Later", background=True)
ended = begun
while ended.status in ("queued", "in_progress"):
    time.sleep(0.05)
    ended = client.responses.retrieve(begun.id)
seen["background"] = [begun.status, ended.status, ended.output_text]

numbers, resumed = [], None
for event in client.responses.create(model=MODEL, input="[echo] Streamed later on", background=True, stream=True):
    numbers.append(event.sequence_number)
    if event.type == "response.created":
        resumed = event.response.id
    if event.type == "response.output_text.delta":
        break
rest = list(client.responses.retrieve(resumed, stream=True, starting_after=numbers[-1]))
numbers += [event.sequence_number for event in rest]
seen["resumed"] = [numbers == list(range(len(numbers))), rest[-1].type, rest[-1].response.output_text]

conversation = client.conversations.create(items=[{"type": "message", "role": "user", "content": "I am Ann."}], metadata={"topic": "names"})
answer = client.responses.create(model=MODEL, input="[echo] Ann", conversation=conversation.id)
items = list(client.conversations.items.list(conversation.id, order="asc"))
seen["conversation"] = [answer.conversation.id == conversation.id, [item.type for item in items], client.conversations.retrieve(conversation.id).metadata]
item = client.conversations.items.retrieve(items[0].id, conversation_id=conversation.id)
client.conversations.items.delete(item.id, conversation_id=conversation.id)
added = client.conversations.items.create(conversation.id, items=[{"type": "message", "role": "user", "content": "Bye"}])
updated = client.conversations.update(conversation.id, metadata={"topic": "ends"})
seen["changed"] = [item.id == items[0].id, len(added.data), updated.metadata]
seen["gone"] = [client.conversations.delete(conversation.id).deleted, refused(client.conversations.retrieve, conversation.id)]

print(json.dumps(seen))
