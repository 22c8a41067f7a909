/** A text that is read out: heard while it comes, where the browser can play it so. */
import { Button, Group, NumberInput, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useRef, useState } from "react";
import type { CombinedError } from "urql";
import { streamGeneration } from "../../client/generate.js";
import {
  type AudioFormat,
  type PlaygroundReceiptFragment,
  PlaygroundSpeechDocument,
  type SpeechInput,
} from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty } from "../../ui/states.js";
import { AsCode } from "./as-code.js";
import { estimateCharacters } from "./estimate.js";
import { Player } from "./player.js";
import { Refusal } from "./refusal.js";
import { wireNames } from "./snippets.js";
import { GrowingSound, toBytes, useObjectUrl } from "./sound.js";
import { Actions, Charged, useKindModel, Workbench } from "./workbench.js";

const FORMATS: readonly AudioFormat[] = ["MP3", "OPUS", "AAC", "FLAC", "WAV"];

interface Spoken {
  /** Played while it comes; null once it is whole, or where it cannot. */
  readonly growing: string | null;
  readonly whole: Blob | null;
  readonly bytes: number;
  readonly receipt: PlaygroundReceiptFragment | null;
  readonly format: AudioFormat;
}

export default function Speech() {
  const { model, picker } = useKindModel("SPEECH");
  const [text, setText] = useState("");
  const [voice, setVoice] = useState("");
  const [format, setFormat] = useState<AudioFormat>("MP3");
  const [speed, setSpeed] = useState<number | string>("");
  const [instructions, setInstructions] = useState("");
  const [spoken, setSpoken] = useState<Spoken | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const form = useServerForm(["input", "voice", "speed", "instructions", "responseFormat"]);
  const leave = useRef<() => void>(() => {});
  useEffect(() => () => leave.current(), []);

  const input = (): SpeechInput => ({
    input: text,
    ...(model && { model: model.restId }),
    ...(voice !== "" && { voice }),
    responseFormat: format,
    ...(speed !== "" && { speed: Number(speed) }),
    ...(instructions !== "" && { instructions }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    leave.current();
    setBusy(true);
    setError(undefined);
    setSpoken(null);
    let sound: GrowingSound | null = null;
    let bytes = 0;
    let receipt: PlaygroundReceiptFragment | null = null;
    const finish = () => {
      setBusy(false);
      const whole = sound?.end() ?? null;
      if (whole) setSpoken((before) => ({ growing: before?.growing ?? null, whole, bytes, receipt, format }));
    };
    const stop = streamGeneration(
      PlaygroundSpeechDocument,
      { input: input() },
      {
        onData: ({ speech }) => {
          if ("receipt" in speech) {
            receipt = speech.receipt;
            return;
          }
          sound ??= new GrowingSound(speech.contentType);
          const piece = toBytes(speech.audio);
          bytes += piece.length;
          sound.append(piece);
          setSpoken({ growing: sound.url, whole: null, bytes, receipt: null, format });
        },
        onEnd: (met) => {
          finish();
          setError(met);
          form.accept({ error: met });
        },
      },
    );
    leave.current = () => {
      leave.current = () => {};
      stop();
      finish();
      sound?.close();
    };
  };
  const request = () => ({
    path: "/v1/audio/speech",
    body: wireNames({ ...input() }, ["responseFormat"]),
    output: `speech.${format.toLowerCase()}`,
    sdk: { python: "audio.speech.create", node: "audio.speech.create" },
    graphql: {
      field: "createSpeech",
      type: "SpeechInput",
      selection: "speech { audio contentType } receipt { cost }",
      input: { ...input() },
    },
    print: {
      python: `answer.write_to_file("speech.${format.toLowerCase()}")`,
      node: "const sound = Buffer.from(await answer.arrayBuffer());",
    },
  });
  const settings = (
    <>
      {picker}
      <Card title="Settings">
        <Stack gap="sm">
          {model && model.voices.length > 0 ? (
            <Select
              label="Voice"
              placeholder="alloy"
              searchable
              clearable
              data={[...model.voices]}
              value={voice === "" ? null : voice}
              onChange={(value) => setVoice(value ?? "")}
              error={form.errorOf("voice")}
            />
          ) : (
            <TextInput
              label="Voice"
              placeholder="alloy"
              value={voice}
              onChange={({ target }) => setVoice(target.value)}
              error={form.errorOf("voice")}
            />
          )}
          <Group grow align="flex-start">
            <Select
              label="Format"
              data={FORMATS}
              value={format}
              onChange={(value) => setFormat(FORMATS.find((known) => known === value) ?? "MP3")}
              allowDeselect={false}
            />
            <NumberInput label="Speed" placeholder="as usual" step={0.25} value={speed} onChange={setSpeed} error={form.errorOf("speed")} />
          </Group>
          <Textarea
            label="How it is to be said"
            description="Honoured by some models only."
            autosize
            minRows={2}
            maxRows={6}
            value={instructions}
            onChange={({ target }) => setInstructions(target.value)}
            error={form.errorOf("instructions")}
          />
        </Stack>
      </Card>
    </>
  );
  const estimate = model && text !== "" ? estimateCharacters(model.pricing, text.length) : null;
  return (
    <Workbench summary={model?.restId ?? "choose a model"} aside={settings}>
      <Stack gap="md" miw={0}>
        <Card>
          <form onSubmit={submit}>
            <Stack gap="sm">
              <Textarea
                label="What is to be said"
                description={`${text.length.toLocaleString("en")} characters${estimate === null ? "" : `: about ${estimate} credits`}`}
                inputWrapperOrder={["label", "input", "description", "error"]}
                autosize
                minRows={3}
                maxRows={14}
                value={text}
                onChange={({ target }) => {
                  setText(target.value);
                  form.clear("input");
                }}
                error={form.errorOf("input")}
              />
              {error && <Refusal error={error} onClose={() => setError(undefined)} />}
              <Actions action="Read it out" isBusy={isBusy} isDisabled={text.trim() === "" || !model} onStop={() => leave.current()}>
                <AsCode request={request} />
              </Actions>
            </Stack>
          </form>
        </Card>
        <Card title="Sound">
          {spoken ? <Sound spoken={spoken} /> : <Empty title="Nothing read out yet">It is played as it comes, and can be saved.</Empty>}
        </Card>
      </Stack>
    </Workbench>
  );
}

function Sound({ spoken: { growing, whole, bytes, receipt, format } }: { readonly spoken: Spoken }) {
  const [isBroken, setBroken] = useState(false);
  const own = useObjectUrl(whole);
  const isGrowing = growing !== null && !isBroken;
  const src = isGrowing ? growing : own;
  return (
    <Stack gap="xs">
      {src === null ? (
        <Text size="sm" c="dimmed">
          It is played when it has come as a whole.
        </Text>
      ) : (
        <Player label="What is read out" key={src} src={src} autoPlay={isGrowing} {...(isGrowing && { onError: () => setBroken(true) })} />
      )}
      <Text size="xs" c="dimmed" role="status">
        {Math.ceil(bytes / 1024).toLocaleString("en")} kB {whole ? "in all" : "so far"}
      </Text>
      {own !== null && (
        <Group>
          <Button component="a" href={own} download={`speech.${format.toLowerCase()}`} size="compact-sm" variant="default">
            Save
          </Button>
        </Group>
      )}
      {receipt && <Charged receipt={receipt} />}
    </Stack>
  );
}
