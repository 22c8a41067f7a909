/** What a recording says: of a file, or of the microphone, which is asked for when somebody wants to speak and not before. */
import { MicrophoneIcon, StopIcon } from "@heroicons/react/24/outline";
import { Alert, Button, FileButton, Group, Select, Text, Textarea, TextInput } from "@mantine/core";
import { useInterval } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { type CreateTranscriptionInput, PlaygroundTranscribeDocument, type TranscriptFormat } from "../../client/generated/graphql.js";
import { formatBytes } from "../../ui/amounts.js";
import { Snippet } from "../../ui/copy.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading } from "../../ui/states.js";
import { Bench, GenerationForm, useValues } from "./bench.js";
import { estimateUnits } from "./estimate.js";
import type { Transcript, TranscriptForm } from "./history-content.js";
import { Player } from "./player.js";
import { type Request, wireNames } from "./snippets.js";
import { useObjectUrl } from "./sound.js";
import { useGeneration } from "./use-generation.js";
import { useHistoryItem } from "./use-history-item.js";
import { ReceiptLine, useKindModel } from "./workbench.js";

const FORMATS: readonly { readonly value: TranscriptFormat; readonly label: string }[] = [
  { value: "TEXT", label: "Text" },
  { value: "SRT", label: "Subtitles (SRT)" },
  { value: "VTT", label: "Subtitles (WebVTT)" },
  { value: "VERBOSE_JSON", label: "Everything, as JSON" },
];

const NO_FORM: TranscriptForm = { language: "", prompt: "", responseFormat: "TEXT" };

interface Recording {
  readonly file: File;
  /** Null until the browser has found out. */
  readonly seconds: number | null;
}

export default function Transcription() {
  const kind = useKindModel("TRANSCRIPTION");
  const { model } = kind;
  const [recording, setRecording] = useState<Recording | null>(null);
  const { values, set, restore, form, textField } = useValues(NO_FORM, ["language", "prompt", "responseFormat"]);
  const [made, setMade] = useState<Transcript | null>(null);
  const generation = useGeneration(PlaygroundTranscribeDocument);
  const { save, bar } = useHistoryItem({
    kind: "transcription",
    things: "transcripts",
    show: (kept) => {
      if (kept) restore(kept.form);
      setMade(kept?.made ?? null);
    },
  });
  const file = recording?.file ?? null;
  const own = useObjectUrl(file);
  const { language, prompt, responseFormat } = values;
  const options = (): Omit<CreateTranscriptionInput, "file"> => ({
    ...(model && { model: model.restId }),
    ...(language !== "" && { language }),
    ...(prompt !== "" && { prompt }),
    responseFormat,
  });
  const submit = async () => {
    if (!file) return;
    const answer = await generation.run({ input: { ...options(), file } });
    form.accept(answer);
    const data = answer.data?.createTranscription;
    if (!data || !model) return;
    const { text, formatted, language: heard, durationSeconds } = data.transcription;
    const transcript: Transcript = { text: formatted || text, language: heard, durationSeconds, receipt: data.receipt };
    setMade(transcript);
    save(text || file.name, model.restId, { form: values, made: transcript });
  };
  const request = (): Request => ({
    path: "/v1/audio/transcriptions",
    body: wireNames({ ...options() }, ["responseFormat"]),
    files: ["file"],
    sdk: { method: "audio.transcriptions.create" },
    graphql: {
      field: "createTranscription",
      type: "CreateTranscriptionInput",
      selection: "transcription { text durationSeconds } receipt { cost }",
      input: { ...options(), file: null },
      files: ["file"],
    },
    print: { python: "print(answer)", node: "console.log(answer);" },
  });
  const settings = (
    <>
      <TextInput label="Language" description="Such as en or de. Empty: the model finds out." {...textField("language")} />
      <Textarea
        label="Words that may occur"
        description="Names, or what was said before."
        autosize
        minRows={2}
        maxRows={6}
        {...textField("prompt")}
      />
      <Select
        label="Written as"
        data={FORMATS}
        {...form.input("responseFormat", responseFormat, (value: string | null) =>
          set("responseFormat", FORMATS.find((known) => known.value === value)?.value ?? "TEXT"),
        )}
        allowDeselect={false}
      />
    </>
  );
  return (
    <Bench kind={kind} settings={settings}>
      <GenerationForm
        generation={generation}
        title="Recording"
        action="Write it down"
        isDisabled={!file || !model}
        onSubmit={submit}
        estimate={estimateUnits(model?.pricing, "inputAudioSeconds", recording?.seconds ?? null)}
        request={request}
      >
        <Group gap="xs">
          <FileButton accept="audio/*,video/*" onChange={(chosen) => chosen && setRecording({ file: chosen, seconds: null })}>
            {(props) => (
              <Button {...props} variant="default">
                Choose a file
              </Button>
            )}
          </FileButton>
          <Microphone onRecorded={(spoken, seconds) => setRecording({ file: spoken, seconds })} />
        </Group>
        {file && own !== null ? (
          <div>
            <Text size="sm" className="any-wrap">
              <bdi>{file.name}</bdi>, {formatBytes(file.size)}
            </Text>
            <Player
              label="The recording"
              src={own}
              onLoadedMetadata={({ currentTarget: { duration } }) => {
                // Of what was just spoken browsers do not know the length: it was measured.
                if (Number.isFinite(duration)) setRecording({ file, seconds: duration });
              }}
            />
          </div>
        ) : (
          <Text size="sm" c="dimmed">
            A file with sound, or what you say now. It is sent when you press the button below, and not kept.
          </Text>
        )}
      </GenerationForm>
      <Card title="Transcript" actions={bar}>
        <div aria-live="polite" aria-busy={generation.isBusy}>
          {generation.isBusy ? (
            <Loading rows={3} />
          ) : made ? (
            <>
              <Snippet code={made.text} label="Transcript" wraps />
              <ReceiptLine receipt={made.receipt}>
                {` · ${made.durationSeconds.toFixed(1)} s of sound`}
                {made.language !== null && ` · ${made.language}`}
              </ReceiptLine>
            </>
          ) : (
            <Empty title="Nothing written down yet">Choose a recording, or speak.</Empty>
          )}
        </div>
      </Card>
    </Bench>
  );
}

function Microphone({ onRecorded }: { readonly onRecorded: (file: File, seconds: number) => void }) {
  const [recorder, setRecorder] = useState<MediaRecorder | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const now = useRef<MediaRecorder | null>(null);
  now.current = recorder;
  useEffect(() => () => now.current?.stop(), []);

  const start = async () => {
    setProblem(null);
    // Where the page is not served over TLS browsers have no microphone.
    const devices: MediaDevices | undefined = navigator.mediaDevices;
    if (devices === undefined) return setProblem("Browsers let only pages served over https use the microphone. Choose a file instead.");
    try {
      const stream = await devices.getUserMedia({ audio: true });
      const made = new MediaRecorder(stream);
      const parts: Blob[] = [];
      const begun = performance.now();
      made.addEventListener("dataavailable", ({ data }) => parts.push(data));
      made.addEventListener("stop", () => {
        for (const track of stream.getTracks()) track.stop();
        setRecorder(null);
        const type = made.mimeType.split(";", 1)[0] ?? "audio/webm";
        const ending = type.includes("mp4") ? "m4a" : type.includes("ogg") ? "ogg" : "webm";
        onRecorded(new File(parts, `recording.${ending}`, { type }), (performance.now() - begun) / 1_000);
      });
      made.start();
      setRecorder(made);
    } catch (error) {
      const isRefused = error instanceof DOMException && error.name === "NotAllowedError";
      setProblem(
        isRefused
          ? "The browser does not let this page use the microphone. Allow it beside the address, or choose a file."
          : "No microphone was found. Connect one, or choose a file.",
      );
    }
  };
  return (
    <>
      {recorder ? (
        <Button color="red" onClick={() => recorder.stop()} leftSection={<StopIcon width={16} />}>
          End the recording
        </Button>
      ) : (
        <Button variant="default" onClick={start} leftSection={<MicrophoneIcon width={16} />}>
          Speak
        </Button>
      )}
      <Text size="sm" role="status">
        {recorder ? "Recording." : ""}
      </Text>
      {recorder && <Elapsed />}
      {problem !== null && (
        <Alert color="orange" variant="light" role="alert" w="100%">
          {problem}
        </Alert>
      )}
    </>
  );
}

/** Minutes and seconds since it was first shown. */
function Elapsed() {
  const [seconds, setSeconds] = useState(0);
  useInterval(() => setSeconds((before) => before + 1), 1_000, { autoInvoke: true });
  return (
    <Text size="sm" className="mono" aria-hidden>
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, "0")}
    </Text>
  );
}
