/** A video, which is made as a job: it goes on when the page is left, and its address shows how far it is. */
import { Alert, Button, Checkbox, Group, NumberInput, Progress, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { type CombinedError, useMutation, useSubscription } from "urql";
import {
  PlaygroundCancelJobDocument,
  type PlaygroundJobPartsFragment,
  PlaygroundJobProgressDocument,
  PlaygroundStartVideoDocument,
  PlaygroundUploadDocument,
  type StartVideoInput,
  type VideoAspectRatio,
} from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Failure, Loading } from "../../ui/states.js";
import { AsCode } from "./as-code.js";
import { References } from "./image.js";
import { Film } from "./player.js";
import { Refusal } from "./refusal.js";
import { Actions, Charged, useKindModel, Workbench } from "./workbench.js";

const RATIOS: readonly { readonly value: VideoAspectRatio; readonly label: string }[] = [
  { value: "LANDSCAPE", label: "16 to 9" },
  { value: "PORTRAIT", label: "9 to 16" },
];

export default function Video() {
  const { model, picker } = useKindModel("VIDEO");
  const [search, setSearch] = useSearchParams();
  const jobId = search.get("job");
  const [prompt, setPrompt] = useState("");
  const [references, setReferences] = useState<readonly File[]>([]);
  const [duration, setDuration] = useState<number | string>("");
  const [ratio, setRatio] = useState<VideoAspectRatio | null>(null);
  const [seed, setSeed] = useState<number | string>("");
  const [negative, setNegative] = useState("");
  const [hasAudio, setAudio] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const [, start] = useMutation(PlaygroundStartVideoDocument);
  const [, upload] = useMutation(PlaygroundUploadDocument);
  const form = useServerForm(["prompt", "duration", "aspectRatio", "seed", "negativePrompt", "hasAudio"]);

  const input = (images: readonly string[]): StartVideoInput => ({
    prompt,
    ...(model && { model: model.restId }),
    ...(duration !== "" && { duration: Number(duration) }),
    ...(ratio !== null && { aspectRatio: ratio }),
    ...(seed !== "" && { seed: Number(seed) }),
    ...(negative !== "" && { negativePrompt: negative }),
    ...(hasAudio && { hasAudio }),
    ...(images.length > 0 && { images: [...images] }),
  });
  const send = async (): Promise<CombinedError | undefined> => {
    const images: string[] = [];
    for (const file of references) {
      const { data, error: met } = await upload({ input: { file } });
      if (met) return met;
      if (data?.uploadMedia) images.push(data.uploadMedia.mediaFile.url);
    }
    const { data, error: met } = await start({ input: input(images) });
    const job = data?.startVideo?.job;
    if (job) {
      setSearch((before) => {
        const next = new URLSearchParams(before);
        next.set("job", job.restId);
        return next;
      });
    }
    return met;
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const met = await send();
    setBusy(false);
    setError(met);
    form.accept({ error: met });
  };
  const request = () => {
    const { duration: seconds, aspectRatio, hasAudio: audio, negativePrompt, ...rest } = input([]);
    return {
      path: "/v1/videos",
      body: {
        ...rest,
        ...(seconds !== undefined && { seconds: String(seconds) }),
        ...(aspectRatio && { aspectRatio: aspectRatio === "LANDSCAPE" ? "16:9" : "9:16" }),
        ...(audio && { audio: true }),
        ...(negativePrompt && { negative_prompt: negativePrompt }),
      },
      sdk: null,
      graphql: { field: "startVideo", type: "StartVideoInput", selection: "job { restId status progress }", input: { ...input([]) } },
    };
  };
  const settings = (
    <>
      {picker}
      <Card title="Settings">
        <Stack gap="sm">
          <SimpleGrid cols={2} spacing="sm">
            <NumberInput
              label="Seconds"
              placeholder="model's own"
              value={duration}
              onChange={setDuration}
              error={form.errorOf("duration")}
            />
            <Select
              label="Shape"
              placeholder="model's own"
              clearable
              data={RATIOS}
              value={ratio}
              onChange={(value) => setRatio(RATIOS.find((known) => known.value === value)?.value ?? null)}
              error={form.errorOf("aspectRatio")}
            />
            <NumberInput label="Seed" placeholder="any" value={seed} onChange={setSeed} error={form.errorOf("seed")} />
          </SimpleGrid>
          <TextInput
            label="What should not be seen"
            value={negative}
            onChange={({ target }) => setNegative(target.value)}
            error={form.errorOf("negativePrompt")}
          />
          <Checkbox label="With sound" checked={hasAudio} onChange={({ target }) => setAudio(target.checked)} />
        </Stack>
      </Card>
    </>
  );
  return (
    <Workbench summary={model?.restId ?? "choose a model"} aside={settings}>
      <Stack gap="md" miw={0}>
        <Card>
          <form onSubmit={submit}>
            <Stack gap="sm">
              <Textarea
                label="What is to be seen"
                autosize
                minRows={3}
                maxRows={12}
                value={prompt}
                onChange={({ target }) => {
                  setPrompt(target.value);
                  form.clear("prompt");
                }}
                error={form.errorOf("prompt")}
              />
              <References files={references} onChange={setReferences} />
              {error && <Refusal error={error} onClose={() => setError(undefined)} />}
              <Actions action="Make the video" isBusy={isBusy} isDisabled={prompt.trim() === "" || !model} onStop={null}>
                <AsCode request={request} />
              </Actions>
            </Stack>
          </form>
        </Card>
        <Card title="Video">
          {jobId === null ? (
            <Empty title="No video yet">It takes minutes. You may leave meanwhile: the address of this page leads back to it.</Empty>
          ) : (
            <Job key={jobId} id={jobId} />
          )}
        </Card>
      </Stack>
    </Workbench>
  );
}

/** Follows the job until it is finished, also after the connection was lost. */
function Job({ id }: { readonly id: string }) {
  const [{ data, error }] = useSubscription({ query: PlaygroundJobProgressDocument, variables: { id } });
  const [{ fetching, error: notCancelled }, cancel] = useMutation(PlaygroundCancelJobDocument);
  const job = data?.generationProgress;
  if (!job) return error ? <Failure error={error} /> : <Loading rows={2} />;
  return (
    <Stack gap="sm" data-status={job.status}>
      <div aria-live="polite">
        <Text fw={600}>{describe(job)}</Text>
      </div>
      {job.status === "RUNNING" && (
        <>
          <Progress value={job.progress} aria-label="Progress of the video" size="lg" />
          {notCancelled && <Failure error={notCancelled} />}
          <Group>
            <Button variant="default" size="compact-sm" loading={fetching} onClick={() => cancel({ input: { id: job.id } })}>
              Give the video up
            </Button>
          </Group>
        </>
      )}
      {job.error && (
        <Alert color="red" variant="light" role="alert" title="There is no video">
          <span className="any-wrap">{job.error.message}</span>
        </Alert>
      )}
      {job.result && <Film label="The video" src={`/generations/${encodeURIComponent(job.restId)}/content`} />}
      {job.receipt && <Charged receipt={job.receipt} />}
    </Stack>
  );
}

function describe({ status, progress }: PlaygroundJobPartsFragment): string {
  if (status === "RUNNING") return progress > 0 ? `It is being made: ${progress} percent` : "It is being made";
  if (status === "SUCCEEDED") return "It has been made";
  return status === "CANCELLED" ? "It was given up" : "It could not be made. Nothing was charged.";
}
