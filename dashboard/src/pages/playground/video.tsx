/** Video generation. It runs as a job that continues when the user leaves. The address has the id of the job. */
import { Alert, Button, Checkbox, Group, NumberInput, Progress, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
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
import { ENDS_BY_ITSELF } from "../../client/graphql.js";
import { Card } from "../../ui/page.js";
import { Empty, Failure, Loading } from "../../ui/states.js";
import { Bench, GenerationForm, useValues } from "./bench.js";
import { estimateUnits, numberOf } from "./estimate.js";
import type { VideoForm } from "./history-content.js";
import { Film } from "./player.js";
import { References } from "./references.js";
import type { Request } from "./snippets.js";
import { useHistoryItem } from "./use-history-item.js";
import { ReceiptLine, useKindModel } from "./workbench.js";

const RATIOS: readonly { readonly value: VideoAspectRatio; readonly label: string; readonly wire: string }[] = [
  { value: "LANDSCAPE", label: "16:9", wire: "16:9" },
  { value: "PORTRAIT", label: "9:16", wire: "9:16" },
];
const FIELDS = ["prompt", "duration", "aspectRatio", "seed", "negativePrompt", "hasAudio", "images"];

const NO_FORM: VideoForm = {
  prompt: "",
  references: [],
  duration: "",
  aspectRatio: null,
  seed: "",
  negativePrompt: "",
  hasAudio: false,
};

export default function Video() {
  const kind = useKindModel("VIDEO");
  const { model } = kind;
  const [search] = useSearchParams();
  const jobId = search.get("job");
  const { values, set, restore, form, textField, numberField } = useValues(NO_FORM, FIELDS);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const [, start] = useMutation(PlaygroundStartVideoDocument);
  const [, upload] = useMutation(PlaygroundUploadDocument);
  const { save, bar } = useHistoryItem({
    kind: "video",
    things: "videos",
    show: (content) => content && restore(content.form),
    parametersOf: ({ job }) => ({ job }),
  });
  const { prompt, references, duration, aspectRatio, seed, negativePrompt, hasAudio } = values;

  const input = (images: readonly string[]): StartVideoInput => ({
    prompt,
    ...(model && { model: model.restId }),
    ...(duration !== "" && { duration: Number(duration) }),
    ...(aspectRatio !== null && { aspectRatio }),
    ...(seed !== "" && { seed: Number(seed) }),
    ...(negativePrompt !== "" && { negativePrompt }),
    ...(hasAudio && { hasAudio }),
    ...(images.length > 0 && { images: [...images] }),
  });
  /** URLs of reference images that are already uploaded. */
  const uploaded = useRef(new WeakMap<File, string>());
  const send = async (): Promise<CombinedError | undefined> => {
    const images: string[] = [];
    for (const reference of references) {
      const known = typeof reference === "string" ? reference : uploaded.current.get(reference);
      if (known !== undefined) {
        images.push(known);
        continue;
      }
      if (typeof reference === "string") continue;
      const { data, error: failure } = await upload({ input: { file: reference } });
      if (!data?.uploadMedia) return failure;
      const { url } = data.uploadMedia.mediaFile;
      uploaded.current.set(reference, url);
      images.push(url);
    }
    const { data, error: failure } = await start({ input: input(images) });
    const job = data?.startVideo?.job;
    if (job && model) save(prompt, model.restId, { form: values, job: job.restId });
    return failure;
  };
  const submit = async () => {
    setBusy(true);
    const failure = await send();
    setBusy(false);
    setError(failure);
    form.accept({ error: failure });
  };
  const request = (): Request => {
    // Programs have to upload files first and send their URLs.
    const images = references.map((reference) => (typeof reference === "string" ? reference : "https://URL-OF-THE-IMAGE"));
    const [image] = images;
    const ratio = RATIOS.find(({ value }) => value === aspectRatio);
    return {
      path: "/v1/videos",
      body: {
        prompt,
        ...(model && { model: model.restId }),
        ...(duration !== "" && { seconds: String(duration) }),
        ...(ratio && { aspectRatio: ratio.wire }),
        ...(seed !== "" && { seed: Number(seed) }),
        ...(negativePrompt !== "" && { negative_prompt: negativePrompt }),
        ...(hasAudio && { audio: true }),
        ...(image !== undefined && (images.length > 1 ? { image: images } : { input_reference: { image_url: image } })),
      },
      sdk: null,
      graphql: {
        field: "startVideo",
        type: "StartVideoInput",
        selection: "job { restId status progress }",
        input: { ...input(images) },
      },
    };
  };
  const settings = (
    <>
      <SimpleGrid cols={2} spacing="sm">
        <NumberInput label="Duration (s)" placeholder="Default" {...numberField("duration")} />
        <Select
          label="Aspect ratio"
          placeholder="Default"
          clearable
          data={RATIOS.map(({ value, label }) => ({ value, label }))}
          {...form.input("aspectRatio", aspectRatio, (value: string | null) =>
            set("aspectRatio", RATIOS.find((known) => known.value === value)?.value ?? null),
          )}
        />
        <NumberInput label="Seed" placeholder="Random" {...numberField("seed")} />
      </SimpleGrid>
      <TextInput label="Negative prompt" {...textField("negativePrompt")} />
      <Checkbox label="Generate audio" checked={hasAudio} onChange={({ target }) => set("hasAudio", target.checked)} />
    </>
  );
  return (
    <Bench kind={kind} settings={settings}>
      <GenerationForm
        generation={{ isBusy, isStopped: false, error, setError, stop: null }}
        action="Generate video"
        isDisabled={prompt.trim() === "" || !model}
        onSubmit={submit}
        estimate={estimateUnits(model?.pricing, "outputVideoSeconds", numberOf(duration))}
        request={request}
      >
        <Textarea label="Prompt" autosize minRows={3} maxRows={12} {...textField("prompt")} />
        <References
          references={references}
          onChange={(next) => {
            set("references", next);
            form.clear("images");
          }}
          error={form.errorOf("images")}
        />
      </GenerationForm>
      <Card title="Video" actions={bar}>
        {jobId === null ? (
          <Empty title="No video yet">A video takes minutes. You can leave this page: its address leads back to the video.</Empty>
        ) : (
          <Job key={jobId} id={jobId} />
        )}
      </Card>
    </Bench>
  );
}

/** Follows the job until it is finished, and reconnects after a lost connection. */
function Job({ id }: { readonly id: string }) {
  const [{ data, error }] = useSubscription({ query: PlaygroundJobProgressDocument, variables: { id }, context: ENDS_BY_ITSELF });
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
          <Progress value={job.progress} aria-label="Video progress" size="lg" />
          {notCancelled && <Failure error={notCancelled} />}
          <Group>
            <Button variant="default" size="compact-sm" loading={fetching} onClick={() => cancel({ input: { id: job.id } })}>
              Cancel
            </Button>
          </Group>
        </>
      )}
      {job.error && (
        <Alert color="red" variant="light" role="alert" title="Video generation failed">
          <span className="any-wrap">{job.error.message}</span>
        </Alert>
      )}
      {job.result && <Film label="Generated video" src={`/generations/${encodeURIComponent(job.restId)}/content`} />}
      {job.receipt && <ReceiptLine receipt={job.receipt} />}
    </Stack>
  );
}

function describe({ status, progress, receipt }: PlaygroundJobPartsFragment): string {
  if (status === "RUNNING") return progress > 0 ? `Generating: ${progress}%` : "Generating…";
  if (status === "SUCCEEDED") return "Video ready";
  const end = status === "CANCELLED" ? "Cancelled." : "Failed.";
  return receipt ? end : `${end} You have not been charged.`;
}
