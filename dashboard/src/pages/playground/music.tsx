import { Button, Group, NumberInput, Select, Stack, Textarea } from "@mantine/core";
import { useState } from "react";
import { type AudioFormat, type MusicInput, PlaygroundGenerateMusicDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading } from "../../ui/states.js";
import { Bench, GenerationForm, useValues } from "./bench.js";
import { estimateUnits, numberOf } from "./estimate.js";
import type { MusicForm, Sound } from "./history-content.js";
import { Player } from "./player.js";
import type { Request } from "./snippets.js";
import { toBytes, useObjectUrl } from "./sound.js";
import { useGeneration } from "./use-generation.js";
import { useHistoryItem } from "./use-history-item.js";
import { ReceiptLine, useKindModel } from "./workbench.js";

const FORMATS: readonly AudioFormat[] = ["MP3", "OPUS", "AAC", "FLAC", "WAV"];
const FIELDS = ["prompt", "duration", "responseFormat", "seed"];

const NO_FORM: MusicForm = { prompt: "", duration: "", responseFormat: "MP3", seed: "" };

export default function Music() {
  const kind = useKindModel("MUSIC");
  const { model } = kind;
  const { values, set, restore, form, textField, numberField } = useValues(NO_FORM, FIELDS);
  const [made, setMade] = useState<Sound | null>(null);
  const generation = useGeneration(PlaygroundGenerateMusicDocument);
  const { save, bar } = useHistoryItem({
    kind: "music",
    things: "tracks",
    show: (content) => {
      if (content) restore(content.form);
      setMade(content?.made ?? null);
    },
  });
  const { prompt, duration, responseFormat, seed } = values;
  const input = (): MusicInput => ({
    prompt,
    ...(model && { model: model.restId }),
    ...(duration !== "" && { duration: Number(duration) }),
    responseFormat,
    ...(seed !== "" && { seed: Number(seed) }),
  });
  const submit = async () => {
    const answer = await generation.run({ input: input() });
    form.accept(answer);
    const data = answer.data?.generateMusic;
    if (!data || !model) return;
    // A blob needs less memory than base64.
    const sound = new Blob([toBytes(data.music.audio)], { type: data.music.contentType });
    const piece: Sound = { sound, format: responseFormat, receipt: data.receipt };
    setMade(piece);
    save(prompt, model.restId, { form: values, made: piece });
  };
  const request = (): Request => {
    const { prompt: text, responseFormat: _, ...rest } = input();
    return {
      path: `/audio/${encodeURIComponent(text)}`,
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
      <Group grow align="flex-start">
        <NumberInput label="Duration (s)" placeholder="Default" {...numberField("duration")} />
        <NumberInput label="Seed" placeholder="Random" {...numberField("seed")} />
      </Group>
      <Select
        label="Format"
        data={FORMATS}
        value={responseFormat}
        onChange={(value) => set("responseFormat", FORMATS.find((known) => known === value) ?? "MP3")}
        allowDeselect={false}
      />
    </>
  );
  return (
    <Bench kind={kind} settings={settings}>
      <GenerationForm
        generation={generation}
        action="Generate music"
        isDisabled={prompt.trim() === "" || !model}
        onSubmit={submit}
        estimate={estimateUnits(model?.pricing, "outputAudioSeconds", numberOf(duration))}
        request={request}
      >
        <Textarea label="Prompt" autosize minRows={3} maxRows={12} {...textField("prompt")} />
      </GenerationForm>
      <Card title="Music" actions={bar}>
        <div aria-live="polite" aria-busy={generation.isBusy}>
          {generation.isBusy ? (
            <Loading rows={1} height={54} />
          ) : made ? (
            <Piece made={made} />
          ) : (
            <Empty title="No music yet">Describe a mood, a style or instruments.</Empty>
          )}
        </div>
      </Card>
    </Bench>
  );
}

function Piece({ made: { sound, format, receipt } }: { readonly made: Sound }) {
  const url = useObjectUrl(sound);
  if (url === null) return null;
  return (
    <Stack gap="xs">
      <Player label="Generated music" src={url} />
      <Group>
        <Button component="a" href={url} download={`music.${format.toLowerCase()}`} size="compact-sm" variant="default">
          Download
        </Button>
      </Group>
      {receipt && <ReceiptLine receipt={receipt} />}
    </Stack>
  );
}
