/** A piece of music. */
import { Button, Group, NumberInput, Select, Stack, Textarea } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { type AudioFormat, type MusicInput, PlaygroundGenerateMusicDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Loading } from "../../ui/states.js";
import { AsCode } from "./as-code.js";
import { estimateUnits, numberOf } from "./estimate.js";
import type { MusicForm, Sound } from "./kept.js";
import { Player } from "./player.js";
import { Refusal } from "./refusal.js";
import type { Request } from "./snippets.js";
import { toBytes, useObjectUrl } from "./sound.js";
import { useGeneration } from "./use-generation.js";
import { useKept } from "./use-kept.js";
import { Actions, Charged, useKindModel, Workbench } from "./workbench.js";

const FORMATS: readonly AudioFormat[] = ["MP3", "OPUS", "AAC", "FLAC", "WAV"];
const FIELDS = ["prompt", "duration", "responseFormat", "seed"];

const NO_FORM: MusicForm = { prompt: "", duration: "", responseFormat: "MP3", seed: "" };

export default function Music() {
  const { model, picker } = useKindModel("MUSIC");
  const [values, setValues] = useState(NO_FORM);
  const [made, setMade] = useState<Sound | null>(null);
  const { isBusy, isStopped, error, setError, run, stop } = useGeneration(PlaygroundGenerateMusicDocument);
  const form = useServerForm(FIELDS);
  const { keep, bar } = useKept({
    kind: "music",
    things: "pieces of music",
    show: (kept) => {
      if (kept) setValues({ ...NO_FORM, ...kept.form });
      setMade(kept?.made ?? null);
    },
  });
  const set = <Field extends keyof MusicForm>(field: Field, value: MusicForm[Field]) => {
    setValues((before) => ({ ...before, [field]: value }));
    form.clear(field);
  };
  const { prompt, duration, responseFormat, seed } = values;
  const input = (): MusicInput => ({
    prompt,
    ...(model && { model: model.restId }),
    ...(duration !== "" && { duration: Number(duration) }),
    responseFormat,
    ...(seed !== "" && { seed: Number(seed) }),
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const answer = await run({ input: input() });
    form.accept(answer);
    const data = answer.data?.generateMusic;
    if (!data || !model) return;
    // Its base64 is let go of at once: what is played and kept is a blob.
    const sound = new Blob([toBytes(data.music.audio)], { type: data.music.contentType });
    const piece: Sound = { sound, format: responseFormat, receipt: data.receipt };
    setMade(piece);
    keep(prompt, model.restId, { form: values, made: piece });
  };
  const request = (): Request => {
    const { prompt: asked, responseFormat: _, ...rest } = input();
    return {
      path: `/audio/${encodeURIComponent(asked)}`,
      isGet: true,
      body: { ...rest, response_format: responseFormat.toLowerCase() },
      output: `music.${responseFormat.toLowerCase()}`,
      sdk: null,
      graphql: {
        field: "generateMusic",
        type: "MusicInput",
        selection: "music { audio contentType } receipt { cost }",
        input: { ...input() },
      },
    };
  };
  const settings = (
    <>
      {picker}
      <Card title="Settings">
        <Stack gap="sm">
          <Group grow align="flex-start">
            <NumberInput
              label="Seconds"
              placeholder="model's own"
              value={duration}
              onChange={(value) => set("duration", value)}
              error={form.errorOf("duration")}
            />
            <NumberInput
              label="Seed"
              placeholder="any"
              value={seed}
              onChange={(value) => set("seed", value)}
              error={form.errorOf("seed")}
            />
          </Group>
          <Select
            label="Format"
            data={FORMATS}
            value={responseFormat}
            onChange={(value) => set("responseFormat", FORMATS.find((known) => known === value) ?? "MP3")}
            allowDeselect={false}
          />
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
                label="What is to be heard"
                autosize
                minRows={3}
                maxRows={12}
                value={prompt}
                onChange={({ target }) => set("prompt", target.value)}
                error={form.errorOf("prompt")}
              />
              {error && <Refusal error={error} onClose={() => setError(undefined)} />}
              <Actions
                action="Make the music"
                isBusy={isBusy}
                isDisabled={prompt.trim() === "" || !model}
                isStopped={isStopped}
                onStop={stop}
                estimate={estimateUnits(model?.pricing, "outputAudioSeconds", numberOf(duration))}
              >
                <AsCode request={request} size="sm" />
              </Actions>
            </Stack>
          </form>
        </Card>
        <Card title="Music" actions={bar}>
          <div aria-live="polite" aria-busy={isBusy}>
            {isBusy ? (
              <Loading rows={1} height={54} />
            ) : made ? (
              <Piece made={made} />
            ) : (
              <Empty title="No music yet">Say what is to be heard: a mood, a style, instruments.</Empty>
            )}
          </div>
        </Card>
      </Stack>
    </Workbench>
  );
}

function Piece({ made: { sound, format, receipt } }: { readonly made: Sound }) {
  const url = useObjectUrl(sound);
  if (url === null) return null;
  return (
    <Stack gap="xs">
      <Player label="The music" src={url} />
      <Group>
        <Button component="a" href={url} download={`music.${format.toLowerCase()}`} size="compact-sm" variant="default">
          Save
        </Button>
      </Group>
      {receipt && <Charged receipt={receipt} />}
    </Stack>
  );
}
