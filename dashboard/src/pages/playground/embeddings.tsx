/** Compares texts by the cosine similarity of their embeddings. */
import { XMarkIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Button, Group, NumberInput, Table, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { type CreateEmbeddingsInput, PlaygroundEmbedDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading } from "../../ui/states.js";
import { Wide } from "../../ui/wide.js";
import { Bench, GenerationForm, useValues } from "./bench.js";
import { estimateCost } from "./estimate.js";
import type { Compared, EmbeddingsForm } from "./history-content.js";
import type { Request } from "./snippets.js";
import { useGeneration } from "./use-generation.js";
import { useHistoryItem } from "./use-history-item.js";
import { ReceiptLine, useKindModel } from "./workbench.js";

/** A larger table would be hard to read. */
const TEXTS_MAX = 10;

const NO_FORM: EmbeddingsForm = { texts: ["", "", ""], dimensions: "" };

export default function Embeddings() {
  const kind = useKindModel("EMBEDDING");
  const { model } = kind;
  const { values, set, restore, form, numberField } = useValues(NO_FORM, ["dimensions"]);
  const { texts, dimensions } = values;
  const [compared, setCompared] = useState<Compared | null>(null);
  const generation = useGeneration(PlaygroundEmbedDocument);
  const { save, bar } = useHistoryItem({
    kind: "embeddings",
    things: "comparisons",
    show: (content) => {
      if (content) restore(content.form);
      setCompared(content?.made ?? null);
    },
  });
  const setTexts = (next: readonly string[]) => set("texts", next);
  const filled = texts.filter((text) => text.trim() !== "");
  const input = (): CreateEmbeddingsInput => ({
    ...(model && { model: model.restId }),
    input: filled.map((text) => ({ text })),
    ...(dimensions !== "" && { dimensions: Number(dimensions) }),
  });
  const submit = async () => {
    const answer = await generation.run({ input: input() });
    form.accept(answer);
    const data = answer.data?.createEmbeddings;
    if (!data || !model) return;
    const vectors = [...data.embeddings].sort((a, b) => a.index - b.index).map(({ vector }) => vector);
    const made: Compared = {
      texts: filled,
      cosines: vectors.map((one) => vectors.map((other) => cosineOf(one, other))),
      dimensions: vectors[0]?.length ?? 0,
      receipt: data.receipt,
    };
    setCompared(made);
    save(filled.join(" · "), model.restId, { form: values, made });
  };
  const request = (): Request => ({
    path: "/v1/embeddings",
    body: { ...input(), input: filled },
    sdk: { method: "embeddings.create" },
    graphql: {
      field: "createEmbeddings",
      type: "CreateEmbeddingsInput",
      selection: "embeddings { index vector } receipt { cost }",
      input: { ...input() },
    },
  });
  const settings = (
    <NumberInput label="Dimensions" description="Only for models that support it." placeholder="Default" {...numberField("dimensions")} />
  );
  return (
    <Bench kind={kind} settings={settings}>
      <GenerationForm
        generation={generation}
        title="Texts"
        action="Compare texts"
        isDisabled={filled.length === 0 || !model}
        onSubmit={submit}
        estimate={model && filled.length > 0 ? estimateCost(model.pricing, filled.join("").length, 0) : null}
        request={request}
        beside={
          <Button variant="default" onClick={() => setTexts([...texts, ""])} disabled={texts.length >= TEXTS_MAX}>
            Add text
          </Button>
        }
      >
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
      </GenerationForm>
      <Card title="Similarity" actions={bar}>
        <div aria-live="polite" aria-busy={generation.isBusy}>
          {generation.isBusy ? (
            <Loading rows={3} />
          ) : compared ? (
            <Cosines compared={compared} />
          ) : (
            <Empty title="No comparison yet">A cosine similarity of 1 means the same direction, 0 means unrelated texts.</Empty>
          )}
        </div>
      </Card>
    </Bench>
  );
}

function Cosines({ compared: { texts, cosines, dimensions, receipt } }: { readonly compared: Compared }) {
  return (
    <>
      <Wide label="Cosine similarities">
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
                <Table.Th scope="row" fw={400}>
                  <Text size="sm" lineClamp={2} maw="min(20rem, 38vw)" className="any-wrap" title={text}>
                    {row + 1}. <bdi>{text}</bdi>
                  </Text>
                </Table.Th>
                {cosines[row]?.map((cosine, column) => {
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
      <ReceiptLine receipt={receipt}>{` · ${dimensions} dimensions`}</ReceiptLine>
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
