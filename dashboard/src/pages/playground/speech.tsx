/** Speech generation, played while it arrives if the browser supports it. */
import { Button, Group, NumberInput, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { CombinedError } from "urql";
import { streamGeneration } from "../../client/generate.js";
import {
  type AudioFormat,
  type PlaygroundReceiptFragment,
  PlaygroundSpeechDocument,
  type SpeechInput,
} from "../../client/generated/graphql.js";
import { formatBytes } from "../../ui/amounts.js";
import { Card } from "../../ui/page.js";
import { Empty } from "../../ui/states.js";
import { Bench, GenerationForm, useValues } from "./bench.js";
import { estimateUnits } from "./estimate.js";
import type { Sound, SpeechForm } from "./history-content.js";
import { Player } from "./player.js";
import { type Request, wireNames } from "./snippets.js";
import { GrowingSound, toBytes, useObjectUrl } from "./sound.js";
import { useHistoryItem } from "./use-history-item.js";
import { ReceiptLine, useKindModel } from "./workbench.js";

const FORMATS: readonly AudioFormat[] = ["MP3", "OPUS", "AAC", "FLAC", "WAV"];
/** Default voice of the gateway. */
const VOICE = "alloy";
const FIELDS = ["input", "voice", "speed", "instructions", "responseFormat"];

const NO_FORM: SpeechForm = { input: "", voice: "", responseFormat: "MP3", speed: "", instructions: "" };

/** Audio that is still arriving. */
interface Growing {
  /** Null when the browser cannot play it before it is complete. */
  readonly url: string | null;
  readonly bytes: number;
}

export default function Speech() {
  const kind = useKindModel("SPEECH");
  const { model } = kind;
  const { values, set, restore, form, textField, numberField } = useValues(NO_FORM, FIELDS);
  const [growing, setGrowing] = useState<Growing | null>(null);
  const [made, setMade] = useState<Sound | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isStopped, setStopped] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const leave = useRef<() => void>(() => {});
  useEffect(() => () => leave.current(), []);
  const { save, bar } = useHistoryItem({
    kind: "speech",
    things: "speech clips",
    show: (content) => {
      leave.current();
      if (content) restore(content.form);
      setGrowing(null);
      setMade(content?.made ?? null);
    },
  });
  const { input: text, voice, responseFormat, speed, instructions } = values;

  const input = (): SpeechInput => ({
    input: text,
    ...(model && { model: model.restId }),
    voice: voice === "" ? VOICE : voice,
    responseFormat,
    ...(speed !== "" && { speed: Number(speed) }),
    ...(instructions !== "" && { instructions }),
  });
  const submit = () => {
    if (!model) return;
    leave.current();
    setBusy(true);
    setStopped(false);
    setError(undefined);
    setGrowing(null);
    setMade(null);
    let sound: GrowingSound | null = null;
    let bytes = 0;
    let receipt: PlaygroundReceiptFragment | null = null;
    const finish = () => {
      leave.current = () => {};
      setBusy(false);
      if (!sound) return;
      const whole: Sound = { sound: sound.end(), format: responseFormat, receipt };
      setMade(whole);
      save(text, model.restId, { form: values, made: whole });
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
          setGrowing({ url: sound.url, bytes });
        },
        onEnd: (failure) => {
          finish();
          setError(failure);
          form.accept({ error: failure });
        },
      },
    );
    leave.current = () => {
      stop();
      setStopped(true);
      finish();
      sound?.close();
    };
  };
  const request = (): Request => ({
    path: "/v1/audio/speech",
    body: wireNames({ ...input() }, ["responseFormat"]),
    output: `speech.${responseFormat.toLowerCase()}`,
    sdk: { method: "audio.speech.create" },
    graphql: {
      field: "createSpeech",
      type: "SpeechInput",
      selection: "speech { audio contentType } receipt { cost }",
      input: { ...input() },
    },
    print: {
      python: `answer.write_to_file("speech.${responseFormat.toLowerCase()}")`,
      node: "const sound = Buffer.from(await answer.arrayBuffer());",
    },
  });
  const settings = (
    <>
      {model && model.voices.length > 0 ? (
        <Select
          label="Voice"
          placeholder={VOICE}
          searchable
          clearable
          data={[...model.voices]}
          {...form.input("voice", voice || null, (value: string | null) => set("voice", value ?? ""))}
        />
      ) : (
        <TextInput label="Voice" placeholder={VOICE} {...textField("voice")} />
      )}
      <Group grow align="flex-start">
        <Select
          label="Format"
          data={FORMATS}
          value={responseFormat}
          onChange={(value) => set("responseFormat", FORMATS.find((known) => known === value) ?? "MP3")}
          allowDeselect={false}
        />
        <NumberInput label="Speed" placeholder="Default" step={0.25} {...numberField("speed")} />
      </Group>
      <Textarea
        label="Instructions"
        description="How the text should be spoken. Only some models support it."
        autosize
        minRows={2}
        maxRows={6}
        {...textField("instructions")}
      />
    </>
  );
  return (
    <Bench kind={kind} settings={settings}>
      <GenerationForm
        generation={{ isBusy, isStopped, error, setError, stop: () => leave.current() }}
        action="Generate speech"
        isDisabled={text.trim() === "" || !model}
        onSubmit={submit}
        estimate={estimateUnits(model?.pricing, "characters", text.length)}
        request={request}
      >
        <Textarea
          label="Text"
          description={`${text.length.toLocaleString("en")} characters`}
          inputWrapperOrder={["label", "input", "description", "error"]}
          autosize
          minRows={3}
          maxRows={14}
          {...textField("input")}
        />
      </GenerationForm>
      <Card title="Speech" actions={bar}>
        {growing || made ? (
          <Spoken growing={growing} made={made} />
        ) : (
          <Empty title="No speech yet">Audio plays as it arrives and can be downloaded.</Empty>
        )}
      </Card>
    </Bench>
  );
}

function Spoken({ growing, made }: { readonly growing: Growing | null; readonly made: Sound | null }) {
  const [isBroken, setBroken] = useState(false);
  const own = useObjectUrl(made?.sound ?? null);
  const url = isBroken ? null : (growing?.url ?? null);
  const src = url ?? own;
  return (
    <Stack gap="xs">
      {src === null ? (
        <Text size="sm" c="dimmed">
          Playback starts when the audio is complete.
        </Text>
      ) : (
        <Player
          label="Generated speech"
          key={src}
          src={src}
          autoPlay={url !== null}
          {...(url !== null && { onError: () => setBroken(true) })}
        />
      )}
      <Text size="xs" c="dimmed" role="status">
        {formatBytes(made?.sound.size ?? growing?.bytes ?? 0)} {made ? "in total" : "received"}
      </Text>
      {made && own !== null && (
        <Group>
          <Button component="a" href={own} download={`speech.${made.format.toLowerCase()}`} size="compact-sm" variant="default">
            Download
          </Button>
        </Group>
      )}
      {made?.receipt && <ReceiptLine receipt={made.receipt} />}
    </Stack>
  );
}
