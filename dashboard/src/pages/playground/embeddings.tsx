/** How near texts are to each other: the cosine of their vectors, each with each. */
import { XMarkIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Button, Group, NumberInput, Stack, Table, Text, Textarea } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { type CreateEmbeddingsInput, PlaygroundEmbedDocument, type PlaygroundEmbedMutation } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Loading } from "../../ui/states.js";
import { Wide } from "../../ui/wide.js";
import { AsCode } from "./as-code.js";
import { Refusal } from "./refusal.js";
import { useGeneration } from "./use-generation.js";
import { Actions, Charged, useKindModel, Workbench } from "./workbench.js";

/** More would be no table that anybody reads. */
const TEXTS_MAX = 10;

interface Compared {
  readonly texts: readonly string[];
  readonly made: NonNullable<PlaygroundEmbedMutation["createEmbeddings"]>;
}

export default function Embeddings() {
  const { model, picker } = useKindModel("EMBEDDING");
  const [texts, setTexts] = useState<readonly string[]>(["", "", ""]);
  const [dimensions, setDimensions] = useState<number | string>("");
  const [compared, setCompared] = useState<Compared | null>(null);
  const { isBusy, error, setError, run, stop } = useGeneration(PlaygroundEmbedDocument);
  const form = useServerForm(["dimensions"]);
  const filled = texts.filter((text) => text.trim() !== "");
  const input = (): CreateEmbeddingsInput => ({
    ...(model && { model: model.restId }),
    input: filled.map((text) => ({ text })),
    ...(dimensions !== "" && { dimensions: Number(dimensions) }),
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const answer = await run({ input: input() });
    form.accept(answer);
    if (answer.data?.createEmbeddings) setCompared({ texts: filled, made: answer.data.createEmbeddings });
  };
  const request = () => ({
    path: "/v1/embeddings",
    body: { ...input(), input: filled },
    sdk: { python: "embeddings.create", node: "embeddings.create" },
    graphql: {
      field: "createEmbeddings",
      type: "CreateEmbeddingsInput",
      selection: "embeddings { index vector } receipt { cost }",
      input: { ...input() },
    },
  });
  const settings = (
    <>
      {picker}
      <Card title="Settings">
        <NumberInput
          label="Dimensions"
          description="Where the model lets one choose."
          placeholder="model's own"
          value={dimensions}
          onChange={setDimensions}
          error={form.errorOf("dimensions")}
        />
      </Card>
    </>
  );
  return (
    <Workbench summary={model?.restId ?? "choose a model"} aside={settings}>
      <Stack gap="md" miw={0}>
        <Card title="Texts">
          <form onSubmit={submit}>
            <Stack gap="sm">
              {texts.map((text, index) => (
                <Group key={index} gap="xs" wrap="nowrap" align="flex-start">
                  <Textarea
                    aria-label={`Text ${index + 1}`}
                    placeholder={`Text ${index + 1}`}
                    autosize
                    minRows={1}
                    maxRows={6}
                    value={text}
                    onChange={({ target }) => setTexts(texts.map((other, at) => (at === index ? target.value : other)))}
                    style={{ flex: 1, minWidth: 0 }}
                  />
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size={34}
                    disabled={texts.length <= 2}
                    onClick={() => setTexts(texts.filter((_, at) => at !== index))}
                    aria-label={`Remove text ${index + 1}`}
                  >
                    <XMarkIcon width={16} />
                  </ActionIcon>
                </Group>
              ))}
              {error && <Refusal error={error} onClose={() => setError(undefined)} />}
              <Actions action="Compare the texts" isBusy={isBusy} isDisabled={filled.length === 0 || !model} onStop={stop}>
                <Button variant="default" onClick={() => setTexts([...texts, ""])} disabled={texts.length >= TEXTS_MAX}>
                  Add a text
                </Button>
                <AsCode request={request} />
              </Actions>
            </Stack>
          </form>
        </Card>
        <Card title="How near they are">
          <div aria-live="polite" aria-busy={isBusy}>
            {isBusy ? (
              <Loading rows={3} />
            ) : compared ? (
              <Cosines compared={compared} />
            ) : (
              <Empty title="Nothing compared yet">1 is the same direction, 0 has nothing in common.</Empty>
            )}
          </div>
        </Card>
      </Stack>
    </Workbench>
  );
}

function Cosines({ compared: { texts, made } }: { readonly compared: Compared }) {
  const vectors = [...made.embeddings].sort((a, b) => a.index - b.index).map(({ vector }) => vector);
  return (
    <>
      <Wide label="Cosines of the texts">
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Text</Table.Th>
              {texts.map((_, index) => (
                <Table.Th key={index} ta="right">
                  {index + 1}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {texts.map((text, row) => (
              <Table.Tr key={row}>
                <Table.Th scope="row" fw={400} maw={320} miw={140}>
                  <Text size="sm" lineClamp={2} className="any-wrap" title={text}>
                    {row + 1}. <bdi>{text}</bdi>
                  </Text>
                </Table.Th>
                {vectors.map((vector, column) => {
                  const cosine = cosineOf(vectors[row] ?? [], vector);
                  const share = Math.round(Math.max(cosine, 0) * 45);
                  return (
                    <Table.Td
                      key={column}
                      ta="right"
                      style={{ background: row === column ? undefined : `color-mix(in srgb, var(--strong) ${share}%, transparent)` }}
                    >
                      {cosine.toFixed(3)}
                    </Table.Td>
                  );
                })}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Wide>
      <Charged receipt={made.receipt}>{` · ${vectors[0]?.length ?? 0} dimensions`}</Charged>
    </>
  );
}

function cosineOf(a: readonly number[], b: readonly number[]): number {
  let product = 0;
  let squaresA = 0;
  let squaresB = 0;
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    product += value * other;
    squaresA += value * value;
    squaresB += other * other;
  }
  return squaresA === 0 || squaresB === 0 ? 0 : product / Math.sqrt(squaresA * squaresB);
}
