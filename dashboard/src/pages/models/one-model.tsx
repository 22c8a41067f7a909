/** Details of one model, and a calculator for the cost of a request. */
import { Alert, Anchor, Button, Group, SimpleGrid, Stack, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Link, Navigate } from "react-router";
import { useAnswer } from "../../client/answer.js";
import { type Modality, ModelsOneDocument, type ModelsOneQuery } from "../../client/generated/graphql.js";
import { addressOf, addressOfModel } from "../../shell/pages.js";
import { formatPercent } from "../../ui/amounts.js";
import { Copyable } from "../../ui/copy.js";
import { Credits, formatCredits } from "../../ui/credits.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { MODALITIES } from "../../ui/modalities.js";
import { Card, Page } from "../../ui/page.js";
import { costOf, type PricedKind, pricesOf } from "../../ui/prices.js";
import { When } from "../../ui/when.js";
import { Programs } from "../playground/as-code.js";
import { KINDS } from "../playground/kinds.js";
import { ActivityCard } from "./activity.js";
import { exampleOf } from "./example.js";
import { CAPABILITIES, HEALTH } from "./filters.js";
import { Marks } from "./marks.js";
import { PriceHistoryCard } from "./price-history.js";

type Shown = NonNullable<ModelsOneQuery["model"]>;

const ABOVE = [{ label: "Models", to: addressOf("models") }];

export function OneModel({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: ModelsOneDocument, variables: { id } });
  return (
    <DetailView answer={answer} name="model" above={ABOVE} why="It may have been removed, or it is not available to you." all="All models">
      {({ model }) =>
        // Aliases and node IDs, which addresses had before, lead to the address with the canonical ID.
        model && (model.restId === id ? <Details model={model} /> : <Navigate replace to={addressOfModel(model.restId)} />)
      }
    </DetailView>
  );
}

function Details({ model }: { readonly model: Shown }) {
  const { title, restId, description, pendingChange, health, voices, aliases } = model;
  const playground = playgroundLink(model);
  const example = exampleOf(model);
  const list = (texts: readonly string[]) => texts.map((text) => text.toLowerCase().replaceAll("_", " ")).join(", ");
  return (
    <Page
      title={<bdi>{title}</bdi>}
      tabTitle={title}
      above={ABOVE}
      actions={
        playground !== null && (
          <Button component={Link} to={playground}>
            Try in playground
          </Button>
        )
      }
    >
      <Stack gap={4}>
        <Copyable value={restId} label="model ID" />
        <Marks model={model} />
        {description !== null && (
          <Text maw="46rem" className="any-wrap" dir="auto">
            {description}
          </Text>
        )}
      </Stack>
      {pendingChange && (
        <Alert color="orange" variant="light" title="Scheduled change" role="status">
          Takes effect <When value={pendingChange.effectiveAt} />.
          {pendingChange.visibility === "PRIVATE" && " Only its owner can call it after that."}
          {pendingChange.isPaidOnly && " It accepts purchased credits only after that."}
          {pendingChange.pricing && (
            <Text size="sm">
              {pricesOf(pendingChange.pricing)
                .map(({ price, per, traits }) => `${traits.label} ${formatCredits(price)} ${per}`)
                .join(", ") || "Free"}
            </Text>
          )}
        </Alert>
      )}
      {model.activity && <ActivityCard activity={model.activity} />}
      {example && (
        <Card title="Use this model">
          <Programs request={example} intro="An example request." />
        </Card>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="Prices in credits">
          <PriceTable model={model} />
        </Card>
        <Card title="Cost calculator">
          <Calculator model={model} />
        </Card>
      </SimpleGrid>
      <PriceHistoryCard changes={model.priceHistory} />
      <Card title="Details">
        <Facts>
          <Fact label="Type">{MODALITIES.get(model.modality)}</Fact>
          <Fact label="Publisher">
            <bdi>{model.publisher}</bdi>
          </Fact>
          {model.ownerHandle !== null && (
            <Fact label="Owner">
              <bdi>{model.ownerHandle}</bdi>
            </Fact>
          )}
          <Fact label="Input">{list(model.inputModalities) || "–"}</Fact>
          <Fact label="Output">{list(model.outputModalities) || "–"}</Fact>
          <Fact label="Capabilities">{model.capabilities.map((one) => CAPABILITIES.get(one)?.toLowerCase()).join(", ") || "–"}</Fact>
          <Fact label="Context">{model.contextLength === null ? "Unknown" : `${model.contextLength.toLocaleString("en")} tokens`}</Fact>
          {model.perUserRpm !== null && <Fact label="Rate limit">{model.perUserRpm} requests per minute</Fact>}
          {voices.length > 0 && <Fact label="Voices">{voices.join(", ")}</Fact>}
          {aliases.length > 0 && <Fact label="Aliases">{aliases.join(", ")}</Fact>}
          {model.requiredSafetyFeatures.length > 0 && <Fact label="Safety checks">{list(model.requiredSafetyFeatures)}</Fact>}
          {model.isCommunity && (
            <Fact label="Health">
              {HEALTH.get(health.status)}
              {health.successRate !== null && (
                <Text span size="sm" c="dimmed">
                  : {formatPercent(health.successRate)} of {health.requests.toLocaleString("en")} requests in the last 24 hours succeeded
                </Text>
              )}
            </Fact>
          )}
          <Fact label="Fallbacks">
            {model.fallbacks.length === 0
              ? "None"
              : model.fallbacks.map((other, index) => (
                  <span key={other.id}>
                    {index > 0 && ", then "}
                    <Anchor component={Link} fz="inherit" to={addressOfModel(other.restId)}>
                      <bdi>{other.title}</bdi>
                    </Anchor>
                  </span>
                ))}
          </Fact>
          <Fact label="Added">
            <When value={model.addedAt} />
          </Fact>
        </Facts>
      </Card>
    </Page>
  );
}

/** Link to the playground. Null for realtime, rerank and moderation models, which it does not support. */
function playgroundLink({ modality, restId }: Shown): string | null {
  const kind = KINDS.find((known) => known.modality === modality);
  const path = kind?.modality === "TEXT" ? "playground" : `playground/${kind?.name}`;
  return kind ? `${addressOf(path)}?model=${encodeURIComponent(restId)}` : null;
}

function PriceTable({ model: { pricing, flags, imagePricing, modality } }: { readonly model: Shown }) {
  const prices = pricesOf(pricing);
  if (!flags.isPaid) return <Text>Free</Text>;
  return (
    <>
      <Table withRowBorders={false} verticalSpacing={4}>
        <Table.Tbody>
          {prices.map(({ kind, traits, price, per }) => (
            <Table.Tr key={kind}>
              <Table.Th fw={400} px={0} bg="transparent">
                {traits.label}
              </Table.Th>
              <Table.Td ta="right" px={0} title={`${price} credits`}>
                {formatCredits(price)}{" "}
                <Text span size="xs" c="dimmed">
                  {per}
                </Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {modality === "IMAGE" && (
        <Text size="xs" c="dimmed" mt="xs">
          {imagePricing === "REQUEST"
            ? "Charged per image, regardless of its size."
            : "Charged by the image tokens that the upstream reports."}
        </Text>
      )}
    </>
  );
}

/** Amounts of a typical request, by modality. */
const EXAMPLES: Readonly<Record<Modality, Partial<Record<PricedKind, string>>>> = {
  TEXT: { inputTextTokens: "1000", outputTextTokens: "500" },
  REALTIME: { inputAudioTokens: "1000", outputAudioTokens: "1000" },
  IMAGE: { imageRequests: "1", inputTextTokens: "100", outputImageTokens: "1000" },
  VIDEO: { outputVideoSeconds: "5" },
  SPEECH: { characters: "1000" },
  MUSIC: { outputAudioSeconds: "30" },
  TRANSCRIPTION: { inputAudioSeconds: "60" },
  EMBEDDING: { inputTextTokens: "1000" },
  RERANK: { inputTextTokens: "1000" },
  MODERATION: { inputTextTokens: "1000" },
};

/** Computes exact costs as the gateway does, but without surcharges for long prompts and for options with prices of their own. */
function Calculator({ model: { pricing, flags, modality } }: { readonly model: Shown }) {
  const [typed, setTyped] = useState<ReadonlyMap<PricedKind, string>>(new Map());
  const prices = pricesOf(pricing);
  if (!flags.isPaid) return <Text>Requests to this model are free.</Text>;
  const amounts = new Map(prices.map(({ kind }) => [kind, typed.get(kind) ?? EXAMPLES[modality][kind] ?? "0"]));
  const cost = costOf(pricing, amounts);
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm" verticalSpacing="xs" style={{ alignItems: "end" }}>
        {prices.map(({ kind, traits }) => {
          const value = amounts.get(kind) ?? "";
          return (
            <TextInput
              key={kind}
              label={`${traits.label} (${traits.unit})`}
              inputMode="decimal"
              value={value}
              maxLength={16}
              onChange={({ target }) => setTyped((before) => new Map(before).set(kind, target.value))}
              error={
                isAmount(value, traits.unit === "seconds")
                  ? undefined
                  : traits.unit === "seconds"
                    ? "Enter a number, such as 2.5"
                    : "Enter a whole number"
              }
              autoComplete="off"
            />
          );
        })}
      </SimpleGrid>
      <Group justify="space-between" align="baseline">
        <Text c="dimmed" size="sm">
          Cost per request
        </Text>
        <Text fw={650} fz="1.25rem" component="output" aria-label="Cost per request">
          <Credits value={cost} unit />
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        Some models charge more for very long prompts and for options with prices of their own.
      </Text>
    </Stack>
  );
}

function isAmount(text: string, hasFraction: boolean): boolean {
  return (hasFraction ? /^\d{0,12}(?:\.\d{1,3})?$/ : /^\d{0,12}$/).test(text.trim());
}
