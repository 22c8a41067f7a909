/** A piece of music. */
import { Button, Group, NumberInput, Select, Stack, Text, Textarea } from "@mantine/core";
import { type FormEvent, useMemo, useState } from "react";
import {
  type AudioFormat,
  type MusicInput,
  PlaygroundGenerateMusicDocument,
  type PlaygroundGenerateMusicMutation,
} from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Loading } from "../../ui/states.js";
import { AsCode } from "./as-code.js";
import { Player } from "./player.js";
import { Refusal } from "./refusal.js";
import { toBytes, useObjectUrl } from "./sound.js";
import { useGeneration } from "./use-generation.js";
import { Actions, Charged, useKindModel, Workbench } from "./workbench.js";

type Made = NonNullable<PlaygroundGenerateMusicMutation["generateMusic"]>;

const FORMATS: readonly AudioFormat[] = ["MP3", "OPUS", "AAC", "FLAC", "WAV"];

export default function Music() {
  const { model, picker } = useKindModel("MUSIC");
  const [prompt, setPrompt] = useState("");
  const [duration, setDuration] = useState<number | string>("");
  const [format, setFormat] = useState<AudioFormat>("MP3");
  const [seed, setSeed] = useState<number | string>("");
  const [made, setMade] = useState<Made | null>(null);
  const { isBusy, error, setError, run, stop } = useGeneration(PlaygroundGenerateMusicDocument);
  const form = useServerForm(["prompt", "duration", "responseFormat", "seed"]);
  const input = (): MusicInput => ({
    prompt,
    ...(model && { model: model.restId }),
    ...(duration !== "" && { duration: Number(duration) }),
    responseFormat: format,
    ...(seed !== "" && { seed: Number(seed) }),
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const answer = await run({ input: input() });
    form.accept(answer);
    if (answer.data?.generateMusic) setMade(answer.data.generateMusic);
  };
  const request = () => {
    const { prompt: asked, responseFormat, ...rest } = input();
    return {
      path: `/audio/${encodeURIComponent(asked)}`,
      isGet: true,
      body: { ...rest, response_format: format.toLowerCase() },
      output: `music.${format.toLowerCase()}`,
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
              onChange={setDuration}
              error={form.errorOf("duration")}
            />
            <NumberInput label="Seed" placeholder="any" value={seed} onChange={setSeed} error={form.errorOf("seed")} />
          </Group>
          <Select
            label="Format"
            data={FORMATS}
            value={format}
            onChange={(value) => setFormat(FORMATS.find((known) => known === value) ?? "MP3")}
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
                onChange={({ target }) => {
                  setPrompt(target.value);
                  form.clear("prompt");
                }}
                error={form.errorOf("prompt")}
              />
              {error && <Refusal error={error} onClose={() => setError(undefined)} />}
              <Actions action="Make the music" isBusy={isBusy} isDisabled={prompt.trim() === "" || !model} onStop={stop}>
                <AsCode request={request} />
              </Actions>
            </Stack>
          </form>
        </Card>
        <Card title="Music">
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

function Piece({ made: { music, receipt } }: { readonly made: Made }) {
  const blob = useMemo(() => new Blob([toBytes(music.audio)], { type: music.contentType }), [music]);
  const url = useObjectUrl(blob);
  if (url === null) return null;
  return (
    <Stack gap="xs">
      <Player label="The music" src={url} />
      <Group gap="xs">
        <Button component="a" href={url} download={`music-${receipt.generationId.slice(0, 8)}`} size="compact-sm" variant="default">
          Save
        </Button>
        {music.durationSeconds !== null && (
          <Text size="xs" c="dimmed">
            {music.durationSeconds.toFixed(1)} s
          </Text>
        )}
      </Group>
      <Charged receipt={receipt} />
    </Stack>
  );
}
