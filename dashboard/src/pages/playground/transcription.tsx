/** What a recording says: of a file, or of the microphone, which is asked for when somebody wants to speak and not before. */
import { MicrophoneIcon, StopIcon } from "@heroicons/react/24/outline";
import { Alert, Button, FileButton, Group, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useRef, useState } from "react";
import {
  type CreateTranscriptionInput,
  PlaygroundTranscribeDocument,
  type PlaygroundTranscribeMutation,
  type TranscriptFormat,
} from "../../client/generated/graphql.js";
import { Snippet } from "../../ui/copy.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Loading } from "../../ui/states.js";
import { AsCode } from "./as-code.js";
import { Player } from "./player.js";
import { Refusal } from "./refusal.js";
import { wireNames } from "./snippets.js";
import { useObjectUrl } from "./sound.js";
import { useGeneration } from "./use-generation.js";
import { Actions, Charged, useKindModel, Workbench } from "./workbench.js";

type Made = NonNullable<PlaygroundTranscribeMutation["createTranscription"]>;

const FORMATS: readonly { readonly value: TranscriptFormat; readonly label: string }[] = [
  { value: "TEXT", label: "Text" },
  { value: "SRT", label: "Subtitles (SRT)" },
  { value: "VTT", label: "Subtitles (WebVTT)" },
  { value: "VERBOSE_JSON", label: "Everything, as JSON" },
];

export default function Transcription() {
  const { model, picker } = useKindModel("TRANSCRIPTION");
  const [file, setFile] = useState<File | null>(null);
  const [language, setLanguage] = useState("");
  const [hint, setHint] = useState("");
  const [format, setFormat] = useState<TranscriptFormat>("TEXT");
  const [made, setMade] = useState<Made | null>(null);
  const { isBusy, error, setError, run, stop } = useGeneration(PlaygroundTranscribeDocument);
  const form = useServerForm(["language", "prompt", "responseFormat"]);
  const own = useObjectUrl(file);
  const options = (): Omit<CreateTranscriptionInput, "file"> => ({
    ...(model && { model: model.restId }),
    ...(language !== "" && { language }),
    ...(hint !== "" && { prompt: hint }),
    responseFormat: format,
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!file) return;
    const answer = await run({ input: { ...options(), file } });
    form.accept(answer);
    if (answer.data?.createTranscription) setMade(answer.data.createTranscription);
  };
  const request = () => ({
    path: "/v1/audio/transcriptions",
    body: wireNames({ ...options() }, ["responseFormat"]),
    files: ["file"],
    sdk: { python: "audio.transcriptions.create", node: "audio.transcriptions.create" },
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
      {picker}
      <Card title="Settings">
        <Stack gap="sm">
          <TextInput
            label="Language"
            description="Such as en or de. Empty: the model finds out."
            value={language}
            onChange={({ target }) => {
              setLanguage(target.value);
              form.clear("language");
            }}
            error={form.errorOf("language")}
          />
          <Textarea
            label="Words that may occur"
            description="Names, or what was said before."
            autosize
            minRows={2}
            maxRows={6}
            value={hint}
            onChange={({ target }) => setHint(target.value)}
            error={form.errorOf("prompt")}
          />
          <Select
            label="Written as"
            data={FORMATS}
            value={format}
            onChange={(value) => setFormat(FORMATS.find((known) => known.value === value)?.value ?? "TEXT")}
            allowDeselect={false}
            error={form.errorOf("responseFormat")}
          />
        </Stack>
      </Card>
    </>
  );
  return (
    <Workbench summary={model?.restId ?? "choose a model"} aside={settings}>
      <Stack gap="md" miw={0}>
        <Card title="Recording">
          <form onSubmit={submit}>
            <Stack gap="sm">
              <Group gap="xs">
                <FileButton accept="audio/*,video/*" onChange={(chosen) => chosen && setFile(chosen)}>
                  {(props) => (
                    <Button {...props} variant="default">
                      Choose a file
                    </Button>
                  )}
                </FileButton>
                <Microphone onRecorded={setFile} />
              </Group>
              {file && own !== null ? (
                <div>
                  <Text size="sm" className="any-wrap">
                    <bdi>{file.name}</bdi>, {Math.ceil(file.size / 1024).toLocaleString("en")} kB
                  </Text>
                  <Player label="The recording" src={own} />
                </div>
              ) : (
                <Text size="sm" c="dimmed">
                  A file with sound, or what you say now. It is sent when you press the button below, and not kept.
                </Text>
              )}
              {error && <Refusal error={error} onClose={() => setError(undefined)} />}
              <Actions action="Write it down" isBusy={isBusy} isDisabled={!file || !model} onStop={stop}>
                <AsCode request={request} />
              </Actions>
            </Stack>
          </form>
        </Card>
        <Card title="Transcript">
          <div aria-live="polite" aria-busy={isBusy}>
            {isBusy ? (
              <Loading rows={3} />
            ) : made ? (
              <>
                <Snippet code={made.transcription.formatted || made.transcription.text} label="Transcript" />
                <Charged receipt={made.receipt}>
                  {` · ${made.transcription.durationSeconds.toFixed(1)} s of sound`}
                  {made.transcription.language !== null && ` · ${made.transcription.language}`}
                </Charged>
              </>
            ) : (
              <Empty title="Nothing written down yet">Choose a recording, or speak.</Empty>
            )}
          </div>
        </Card>
      </Stack>
    </Workbench>
  );
}

function Microphone({ onRecorded }: { readonly onRecorded: (file: File) => void }) {
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
      made.addEventListener("dataavailable", ({ data }) => parts.push(data));
      made.addEventListener("stop", () => {
        for (const track of stream.getTracks()) track.stop();
        setRecorder(null);
        const type = made.mimeType.split(";", 1)[0] ?? "audio/webm";
        const ending = type.includes("mp4") ? "m4a" : type.includes("ogg") ? "ogg" : "webm";
        onRecorded(new File(parts, `recording.${ending}`, { type }));
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
      {problem !== null && (
        <Alert color="orange" variant="light" role="alert" w="100%">
          {problem}
        </Alert>
      )}
    </>
  );
}
