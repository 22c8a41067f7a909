/** Pictures, from words alone or from other pictures. */
import { XMarkIcon } from "@heroicons/react/24/outline";
import {
  ActionIcon,
  Button,
  Checkbox,
  FileButton,
  Group,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { type FormEvent, useMemo, useState } from "react";
import {
  type GenerateImageInput,
  type ImageFormat,
  type ImageQuality,
  PlaygroundEditImageDocument,
  PlaygroundGenerateImageDocument,
  type PlaygroundGenerateImageMutation,
} from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Loading } from "../../ui/states.js";
import { AsCode } from "./as-code.js";
import { Refusal } from "./refusal.js";
import { toBytes, useObjectUrl } from "./sound.js";
import { useGeneration } from "./use-generation.js";
import { Actions, Charged, useKindModel, Workbench } from "./workbench.js";

type Made = Omit<NonNullable<PlaygroundGenerateImageMutation["generateImage"]>, "__typename">;

const SIZES = ["1024x1024", "1536x1024", "1024x1536", "512x512", "auto"];
const QUALITIES: readonly ImageQuality[] = ["LOW", "MEDIUM", "HIGH"];
const FORMATS: readonly ImageFormat[] = ["PNG", "JPEG", "WEBP"];

interface Shown {
  readonly prompt: string;
  readonly made: Made;
}

export default function Images() {
  const { model, picker } = useKindModel("IMAGE");
  const [prompt, setPrompt] = useState("");
  const [references, setReferences] = useState<readonly File[]>([]);
  const [size, setSize] = useState("1024x1024");
  const [quality, setQuality] = useState<ImageQuality | null>(null);
  const [format, setFormat] = useState<ImageFormat | null>(null);
  const [n, setN] = useState<number | string>(1);
  const [seed, setSeed] = useState<number | string>("");
  const [negative, setNegative] = useState("");
  const [isTransparent, setTransparent] = useState(false);
  const [shown, setShown] = useState<readonly Shown[]>([]);
  const form = useServerForm(["prompt", "size", "quality", "outputFormat", "n", "seed", "negativePrompt", "isTransparent"]);
  const make = useGeneration(PlaygroundGenerateImageDocument);
  const edit = useGeneration(PlaygroundEditImageDocument);
  const { isBusy, error, setError, stop } = references.length > 0 ? edit : make;

  const input = (): GenerateImageInput => ({
    prompt,
    ...(model && { model: model.restId }),
    size,
    n: Number(n),
    ...(quality !== null && { quality }),
    ...(format !== null && { outputFormat: format }),
    ...(seed !== "" && { seed: Number(seed) }),
    ...(negative !== "" && { negativePrompt: negative }),
    ...(isTransparent && { isTransparent }),
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const answer =
      references.length > 0 ? await edit.run({ input: { ...input(), files: [...references] } }) : await make.run({ input: input() });
    form.accept(answer);
    const made = answer.data && ("editImage" in answer.data ? answer.data.editImage : answer.data.generateImage);
    if (made) setShown((before) => [{ prompt, made }, ...before]);
  };
  const request = () => {
    const { isTransparent: transparent, outputFormat, negativePrompt, quality: chosen, ...rest } = input();
    const isEdit = references.length > 0;
    return {
      path: isEdit ? "/v1/images/edits" : "/v1/images/generations",
      body: {
        ...rest,
        ...(chosen && { quality: chosen.toLowerCase() }),
        ...(outputFormat && { output_format: outputFormat.toLowerCase() }),
        ...(negativePrompt && { negative_prompt: negativePrompt }),
        ...(transparent && { background: "transparent" }),
      },
      ...(isEdit && { files: ["image"] }),
      sdk: isEdit ? { python: "images.edit", node: "images.edit" } : { python: "images.generate", node: "images.generate" },
      graphql: {
        field: isEdit ? "editImage" : "generateImage",
        type: isEdit ? "EditImageInput" : "GenerateImageInput",
        selection: "images { base64 contentType } receipt { cost }",
        input: { ...input(), ...(isEdit && { files: [null] }) },
        ...(isEdit && { files: ["files.0"] }),
      },
    };
  };
  const settings = (
    <>
      {picker}
      <Card title="Settings">
        <Stack gap="sm">
          <Select
            label="Size"
            data={SIZES}
            value={size}
            onChange={(value) => setSize(value ?? "auto")}
            allowDeselect={false}
            error={form.errorOf("size")}
          />
          <SimpleGrid cols={2} spacing="sm">
            <Select
              label="Quality"
              placeholder="model's own"
              clearable
              data={QUALITIES.map((value) => ({ value, label: value.toLowerCase() }))}
              value={quality}
              onChange={(value) => setQuality(QUALITIES.find((known) => known === value) ?? null)}
              error={form.errorOf("quality")}
            />
            <Select
              label="Format"
              placeholder="model's own"
              clearable
              data={FORMATS}
              value={format}
              onChange={(value) => setFormat(FORMATS.find((known) => known === value) ?? null)}
              error={form.errorOf("outputFormat")}
            />
            <NumberInput label="How many" value={n} onChange={setN} error={form.errorOf("n")} />
            <NumberInput label="Seed" placeholder="any" value={seed} onChange={setSeed} error={form.errorOf("seed")} />
          </SimpleGrid>
          <TextInput
            label="What should not be seen"
            value={negative}
            onChange={({ target }) => setNegative(target.value)}
            error={form.errorOf("negativePrompt")}
          />
          <Checkbox label="Transparent ground" checked={isTransparent} onChange={({ target }) => setTransparent(target.checked)} />
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
              <Actions
                action={references.length > 0 ? "Make it of these pictures" : "Make the picture"}
                isBusy={isBusy}
                isDisabled={prompt.trim() === "" || !model}
                onStop={stop}
              >
                <AsCode request={request} />
              </Actions>
            </Stack>
          </form>
        </Card>
        <Card title="Pictures">
          <div aria-live="polite" aria-busy={isBusy}>
            {isBusy && <Loading rows={1} height={240} />}
            {!isBusy && shown.length === 0 && (
              <Empty title="No pictures yet">
                Say what is to be seen. They are shown here until you leave; save those that you want to keep.
              </Empty>
            )}
            <Stack gap="lg">
              {shown.map(({ prompt: asked, made }) => (
                <div key={made.receipt.generationId}>
                  <Text size="sm" mb="xs" className="any-wrap">
                    <bdi>{asked}</bdi>
                  </Text>
                  <div className="gallery">
                    {made.images.map((image, index) => (
                      <Picture
                        key={index}
                        image={image}
                        alt={asked}
                        name={`picture-${made.receipt.generationId.slice(0, 8)}-${index + 1}`}
                      />
                    ))}
                  </div>
                  <Charged receipt={made.receipt} />
                </div>
              ))}
            </Stack>
          </div>
        </Card>
      </Stack>
    </Workbench>
  );
}

function Picture({
  image: { base64, url, contentType, revisedPrompt },
  alt,
  name,
}: {
  readonly image: Made["images"][number];
  readonly alt: string;
  readonly name: string;
}) {
  const blob = useMemo(() => (base64 === null ? null : new Blob([toBytes(base64)], { type: contentType })), [base64, contentType]);
  const own = useObjectUrl(blob);
  const shown = own ?? url;
  if (shown === null) return null;
  return (
    <figure>
      <a href={shown} target="_blank" rel="noopener">
        <img src={shown} alt={alt} />
      </a>
      <figcaption>
        <Group gap="xs" mt={4}>
          <Button
            component="a"
            href={shown}
            download={`${name}.${contentType.replace(/^image\/(?:x-)?/, "").replace("jpeg", "jpg")}`}
            size="compact-xs"
            variant="default"
          >
            Save
          </Button>
          {revisedPrompt && (
            <Text size="xs" c="dimmed" className="any-wrap">
              The model was told: {revisedPrompt}
            </Text>
          )}
        </Group>
      </figcaption>
    </figure>
  );
}

/** As many as a request may have; the gateway says so, too. */
const REFERENCES_MAX = 10;

export function References({ files, onChange }: { readonly files: readonly File[]; readonly onChange: (files: readonly File[]) => void }) {
  return (
    <div>
      <Group gap="xs">
        <FileButton multiple accept="image/*" onChange={(added) => onChange([...files, ...added].slice(0, REFERENCES_MAX))}>
          {(props) => (
            <Button {...props} variant="default" size="compact-sm">
              Add reference pictures
            </Button>
          )}
        </FileButton>
        {files.length === 0 && (
          <Text size="xs" c="dimmed">
            Optional: pictures to begin with.
          </Text>
        )}
      </Group>
      {files.length > 0 && (
        <div className="references">
          {files.map((file, index) => (
            <Reference
              key={`${file.name}-${file.size}-${index}`}
              file={file}
              onRemove={() => onChange(files.filter((_, other) => other !== index))}
            />
          ))}
        </div>
      )}
    </div>
  );
}

function Reference({ file, onRemove }: { readonly file: File; readonly onRemove: () => void }) {
  const url = useObjectUrl(file);
  return (
    <Group gap={4} align="flex-start" mt="xs" wrap="nowrap">
      {url !== null && <img src={url} alt={file.name} />}
      <ActionIcon variant="default" size={24} onClick={onRemove} aria-label={`Remove ${file.name}`}>
        <XMarkIcon width={14} />
      </ActionIcon>
    </Group>
  );
}
