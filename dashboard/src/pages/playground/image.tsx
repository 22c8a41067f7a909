/** Image generation and editing. */
import { Button, Checkbox, Group, NumberInput, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import {
  type GenerateImageInput,
  type ImageFormat,
  type ImageQuality,
  PlaygroundEditImageDocument,
  PlaygroundGenerateImageDocument,
  type PlaygroundGenerateImageMutation,
} from "../../client/generated/graphql.js";
import { Enlargeable } from "../../ui/enlargeable.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading } from "../../ui/states.js";
import { Bench, GenerationForm, useValues } from "./bench.js";
import { estimateUnits, numberOf } from "./estimate.js";
import type { ImageForm, Picture, Pictures } from "./history-content.js";
import { addressesAmong, filesAmong, References } from "./references.js";
import type { Request } from "./snippets.js";
import { toBytes, useObjectUrl } from "./sound.js";
import { useGeneration } from "./use-generation.js";
import { useHistoryItem } from "./use-history-item.js";
import { ReceiptLine, useKindModel } from "./workbench.js";

const SIZES = ["1024x1024", "1536x1024", "1024x1536", "512x512", "auto"];
const QUALITIES: readonly ImageQuality[] = ["LOW", "MEDIUM", "HIGH"];
const FORMATS: readonly ImageFormat[] = ["PNG", "JPEG", "WEBP"];
const FIELDS = ["prompt", "size", "quality", "outputFormat", "n", "seed", "negativePrompt", "isTransparent", "images", "files"];

const NO_FORM: ImageForm = {
  prompt: "",
  references: [],
  size: "1024x1024",
  quality: null,
  outputFormat: null,
  n: 1,
  seed: "",
  negativePrompt: "",
  isTransparent: false,
};

export default function Images() {
  const kind = useKindModel("IMAGE");
  const { model } = kind;
  const { values, set, restore, form, textField, numberField } = useValues(NO_FORM, FIELDS);
  const [shown, setShown] = useState<readonly Pictures[]>([]);
  const make = useGeneration(PlaygroundGenerateImageDocument);
  const edit = useGeneration(PlaygroundEditImageDocument);
  const { save, bar } = useHistoryItem({
    kind: "image",
    things: "images",
    show: (content) => {
      if (content) restore(content.form);
      setShown(content ? [content.made] : []);
    },
  });

  const { prompt, references, size, quality, outputFormat, n, seed, negativePrompt, isTransparent } = values;
  const [files, images] = [filesAmong(references), addressesAmong(references)];
  const isEdit = references.length > 0;
  const generation = isEdit ? edit : make;

  const input = (): GenerateImageInput => ({
    prompt,
    ...(model && { model: model.restId }),
    size,
    ...(n !== "" && { n: Number(n) }),
    ...(quality !== null && { quality }),
    ...(outputFormat !== null && { outputFormat }),
    ...(seed !== "" && { seed: Number(seed) }),
    ...(negativePrompt !== "" && { negativePrompt }),
    ...(isTransparent && { isTransparent }),
  });
  const submit = async () => {
    const answer = isEdit ? await edit.run({ input: { ...input(), images, files } }) : await make.run({ input: input() });
    form.accept(answer);
    const data = answer.data && ("editImage" in answer.data ? answer.data.editImage : answer.data.generateImage);
    if (!data || !model) return;
    const made = { prompt, pictures: data.images.flatMap(toPicture), receipt: data.receipt };
    setShown((before) => [made, ...before]);
    save(prompt, model.restId, { form: values, made });
  };
  const request = (): Request => {
    return {
      path: isEdit ? "/v1/images/edits" : "/v1/images/generations",
      body: {
        prompt,
        ...(model && { model: model.restId }),
        size,
        ...(n !== "" && { n: Number(n) }),
        ...(quality && { quality: quality.toLowerCase() }),
        ...(outputFormat && { output_format: outputFormat.toLowerCase() }),
        ...(seed !== "" && { seed: Number(seed) }),
        ...(negativePrompt && { negative_prompt: negativePrompt }),
        ...(isTransparent && { background: "transparent" }),
        ...(images.length > 0 && { image: images }),
      },
      files: files.map(() => "image"),
      // The SDKs send images as files only.
      sdk: images.length > 0 ? null : { method: isEdit ? "images.edit" : "images.generate", own: ["seed", "negative_prompt"] },
      graphql: {
        field: isEdit ? "editImage" : "generateImage",
        type: isEdit ? "EditImageInput" : "GenerateImageInput",
        selection: "images { base64 contentType } receipt { cost }",
        input: { ...input(), ...(images.length > 0 && { images }), ...(files.length > 0 && { files: files.map(() => null) }) },
        files: files.map((_, index) => `files.${index}`),
      },
    };
  };
  const settings = (
    <>
      <Select
        label="Size"
        data={SIZES}
        {...form.input("size", size, (value: string | null) => set("size", value ?? "auto"))}
        allowDeselect={false}
      />
      <SimpleGrid cols={2} spacing="sm">
        <Select
          label="Quality"
          placeholder="Default"
          clearable
          data={QUALITIES.map((value) => ({ value, label: value.toLowerCase() }))}
          {...form.input("quality", quality, (value: string | null) => set("quality", QUALITIES.find((known) => known === value) ?? null))}
        />
        <Select
          label="Format"
          placeholder="Default"
          clearable
          data={FORMATS}
          {...form.input("outputFormat", outputFormat, (value: string | null) =>
            set("outputFormat", FORMATS.find((known) => known === value) ?? null),
          )}
        />
        <NumberInput label="Images" {...numberField("n")} />
        <NumberInput label="Seed" placeholder="Random" {...numberField("seed")} />
      </SimpleGrid>
      <TextInput label="Negative prompt" {...textField("negativePrompt")} />
      <Checkbox label="Transparent background" checked={isTransparent} onChange={({ target }) => set("isTransparent", target.checked)} />
    </>
  );
  return (
    <Bench kind={kind} settings={settings}>
      <GenerationForm
        generation={generation}
        action={isEdit ? "Edit images" : "Generate image"}
        isDisabled={prompt.trim() === "" || !model}
        onSubmit={submit}
        estimate={estimateUnits(model?.pricing, "imageRequests", numberOf(n))}
        request={request}
      >
        <Textarea label="Prompt" autosize minRows={3} maxRows={12} {...textField("prompt")} />
        <References
          references={references}
          onChange={(next) => {
            set("references", next);
            form.clear("images");
            form.clear("files");
          }}
          error={form.errorOf("images") ?? form.errorOf("files")}
        />
      </GenerationForm>
      <Card title="Images" actions={bar}>
        <div aria-live="polite" aria-busy={generation.isBusy}>
          {generation.isBusy && <Loading rows={1} height={240} />}
          {!generation.isBusy && shown.length === 0 && (
            <Empty title="No images yet">
              Enter a prompt to generate images. This browser keeps the latest ones under History. Download those that you want to keep.
            </Empty>
          )}
          <Stack gap="lg">
            {shown.map(({ prompt: usedPrompt, pictures, receipt }) => (
              <div key={receipt.generationId}>
                <Text size="sm" mb="xs" className="any-wrap">
                  <bdi>{usedPrompt}</bdi>
                </Text>
                <div className="gallery">
                  {pictures.map((picture, index) => (
                    <Shown key={index} picture={picture} alt={usedPrompt} name={`image-${receipt.generationId.slice(0, 8)}-${index + 1}`} />
                  ))}
                </div>
                <ReceiptLine receipt={receipt} />
              </div>
            ))}
          </Stack>
        </div>
      </Card>
    </Bench>
  );
}

/** Converts base64 to a blob at once, because base64 needs more memory. */
function toPicture(image: NonNullable<PlaygroundGenerateImageMutation["generateImage"]>["images"][number]): Picture[] {
  const { base64, url, contentType, revisedPrompt } = image;
  const source = base64 === null ? url : new Blob([toBytes(base64)], { type: contentType });
  return source === null ? [] : [{ source, contentType, revisedPrompt }];
}

function Shown({
  picture: { source, contentType, revisedPrompt },
  alt,
  name,
}: {
  readonly picture: Picture;
  readonly alt: string;
  readonly name: string;
}) {
  const own = useObjectUrl(typeof source === "string" ? null : source);
  const shown = typeof source === "string" ? source : own;
  if (shown === null) return null;
  return (
    <figure>
      <Enlargeable url={shown} name={alt}>
        <img src={shown} alt={alt} />
      </Enlargeable>
      <figcaption>
        <Group gap="xs" mt={4}>
          <Button
            component="a"
            href={shown}
            download={`${name}.${contentType.replace(/^image\/(?:x-)?/, "").replace("jpeg", "jpg")}`}
            size="compact-xs"
            variant="default"
          >
            Download
          </Button>
          {revisedPrompt && (
            <Text size="xs" c="dimmed" className="any-wrap">
              Revised prompt: {revisedPrompt}
            </Text>
          )}
        </Group>
      </figcaption>
    </figure>
  );
}
