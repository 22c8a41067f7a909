/** Transcription of a file or of a recording. The browser asks for the microphone only when the user starts to record. */
import { MicrophoneIcon, StopIcon } from "@heroicons/react/24/outline";
import { Alert, Button, FileButton, Group, Select, Text, Textarea, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { type CreateTranscriptionInput, PlaygroundTranscribeDocument, type TranscriptFormat } from "../../client/generated/graphql.js";
import { formatBytes } from "../../ui/amounts.js";
import { Snippet } from "../../ui/copy.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading } from "../../ui/states.js";
import { Bench, GenerationForm, useValues } from "./bench.js";
import { Elapsed } from "./elapsed.js";
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
  { value: "VERBOSE_JSON", label: "Verbose JSON" },
];

const NO_FORM: TranscriptForm = { language: "", prompt: "", responseFormat: "TEXT" };

interface Recording {
  readonly file: File;
  /** Null until the browser has read the metadata. */
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
    show: (content) => {
      if (content) restore(content.form);
      setMade(content?.made ?? null);
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
      <TextInput label="Language" description="For example en. Leave empty to detect it." {...textField("language")} />
      <Textarea
        label="Prompt"
        description="Names and terms in the audio, or the preceding text."
        autosize
        minRows={2}
        maxRows={6}
        {...textField("prompt")}
      />
      <Select
        label="Output format"
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
        title="Audio"
        action="Transcribe"
        isDisabled={!file || !model}
        onSubmit={submit}
        estimate={estimateUnits(model?.pricing, "inputAudioSeconds", recording?.seconds ?? null)}
        request={request}
      >
        <Group gap="xs">
          <FileButton accept="audio/*,video/*" onChange={(chosen) => chosen && setRecording({ file: chosen, seconds: null })}>
            {(props) => (
              <Button {...props} variant="default">
                Choose file
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
              label="Audio to transcribe"
              src={own}
              onLoadedMetadata={({ currentTarget: { duration } }) => {
                // Browsers do not know the duration of a fresh recording, which was measured instead.
                if (Number.isFinite(duration)) setRecording({ file, seconds: duration });
              }}
            />
          </div>
        ) : (
          <Text size="sm" c="dimmed">
            Choose an audio file, or record audio. It is sent when you press Transcribe, and is not stored.
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
                {` · ${made.durationSeconds.toFixed(1)} s of audio`}
                {made.language !== null && ` · ${made.language}`}
              </ReceiptLine>
            </>
          ) : (
            <Empty title="No transcript yet">Choose an audio file, or record audio.</Empty>
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
    // Undefined on pages without https.
    const devices: MediaDevices | undefined = navigator.mediaDevices;
    if (devices === undefined) return setProblem("Recording works on https pages only. Choose a file instead.");
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
          ? "This page may not use the microphone. Allow it in your browser, or choose a file."
          : "No microphone found. Connect one, or choose a file.",
      );
    }
  };
  return (
    <>
      {recorder ? (
        <Button color="red" onClick={() => recorder.stop()} leftSection={<StopIcon width={16} />}>
          Stop recording
        </Button>
      ) : (
        <Button variant="default" onClick={start} leftSection={<MicrophoneIcon width={16} />}>
          Record
        </Button>
      )}
      <Text size="sm" role="status">
        {recorder ? "Recording…" : ""}
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
