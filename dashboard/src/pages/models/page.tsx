import { Anchor, Button, Group, MultiSelect, Select, Table, Text } from "@mantine/core";
import { useMemo } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { useQuery } from "urql";
import { useAnswer } from "../../client/answer.js";
import { type ModelRowFragment, ModelsListDocument, ModelsOneDocument, ModelsPublishersDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { addressOfModel } from "../../shell/pages.js";
import { formatCount } from "../../ui/amounts.js";
import { formatCredits } from "../../ui/credits.js";
import { FilterInput } from "../../ui/filter-input.js";
import { Filters } from "../../ui/filters.js";
import { MODALITIES, MODALITY_OPTIONS } from "../../ui/modalities.js";
import { Card, Page } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { pricesOf } from "../../ui/prices.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { Wide } from "../../ui/wide.js";
import { CAPABILITIES, COSTS, type FilterName, HEALTH, ORDER_DEFAULT, ORDERS, priceFilterFor, readModels, SOURCES } from "./filters.js";
import { Marks } from "./marks.js";
import { OneModel } from "./one-model.js";
import "./models.css";

export function start({ params, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  const id = idIn(params);
  if (id === "") prefetch(ModelsListDocument, readModels(url.searchParams));
  else prefetch(ModelsOneDocument, { id });
}

export function Component() {
  const id = idIn(useParams());
  return id === "" ? <Models /> : <OneModel id={id} />;
}

/** ID of a model from the address; empty on the list. IDs have slashes, so it is all that follows. */
const idIn = ({ "*": rest = "" }: Readonly<Record<string, string | undefined>>) => rest.replace(/\/$/, "");

function Models() {
  const [query, setQuery] = useSearchParams();
  const variables = useMemo(() => readModels(query), [query]);
  const answer = useAnswer({ query: ModelsListDocument, variables });
  const set = (values: Partial<Record<FilterName, string | readonly string[] | null>>, isTyped = false) =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        // Cursors are valid for the same filters only.
        next.delete("after");
        for (const [name, value] of Object.entries(values)) {
          next.delete(name);
          for (const one of typeof value === "string" ? [value] : (value ?? [])) if (one !== "") next.append(name, one);
        }
        return next;
      },
      { replace: isTyped },
    );
  return (
    <Page title="Models" description="All models that you can call, with their prices. Requests name a model by its ID.">
      <ModelFilters query={query} set={set} />
      <Card>
        <QueryView answer={answer} loading={<Loading rows={10} height={44} />}>
          {({ models }) => {
            const { nodes = [], pageInfo, totalCount = 0 } = models ?? {};
            return nodes.length === 0 ? (
              <Empty
                title="No models match your filters"
                action={
                  <Button variant="default" onClick={() => setQuery({})}>
                    Clear filters
                  </Button>
                }
              >
                Try fewer filters.
              </Empty>
            ) : (
              <>
                <ModelTable models={nodes} />
                <Group justify="space-between" mt="sm">
                  <Text size="sm" c="dimmed" role="status">
                    {formatCount(totalCount, "model", "models")}
                  </Text>
                  <Pager
                    after={query.get("after")}
                    pageInfo={pageInfo}
                    onMove={(after) => set({ after })}
                    first="First page"
                    next="Next page"
                  />
                </Group>
              </>
            );
          }}
        </QueryView>
      </Card>
    </Page>
  );
}

const toOptions = (labels: ReadonlyMap<string, string>) => [...labels].map(([value, label]) => ({ value, label }));

function ModelFilters({
  query,
  set,
}: {
  readonly query: URLSearchParams;
  readonly set: (values: Partial<Record<FilterName, string | readonly string[] | null>>, isTyped?: boolean) => void;
}) {
  const [{ data }] = useQuery({ query: ModelsPublishersDocument });
  const publisher = query.get("publisher");
  const unit = priceFilterFor(query)?.label;
  const publishers = [
    ...new Set([...(data?.models?.nodes ?? []).map((model) => model.publisher), ...(publisher ? [publisher] : [])]),
  ].sort();
  return (
    <Filters
      count={FOLDED.filter((name) => query.has(name)).length}
      search={
        <FilterInput
          label="Search"
          placeholder="Name, ID or description"
          type="search"
          value={query.get("q") ?? ""}
          onChange={(q) => set({ q }, true)}
        />
      }
    >
      <Select
        label="Type"
        placeholder="Any type"
        data={MODALITY_OPTIONS}
        value={query.get("modality")}
        onChange={(modality) => set({ modality })}
        {...CHOICE}
      />
      <MultiSelect
        label="Capabilities"
        placeholder={query.has("can") ? "" : "Any"}
        data={toOptions(CAPABILITIES)}
        value={query.getAll("can")}
        onChange={(can) => set({ can })}
        {...CHOICE}
      />
      <Select
        label="Publisher"
        placeholder="Any"
        data={publishers}
        value={publisher}
        onChange={(value) => set({ publisher: value })}
        {...CHOICE}
        searchable
      />
      <Select
        label="Source"
        placeholder="Any"
        data={toOptions(SOURCES)}
        value={query.get("by")}
        onChange={(by) => set({ by })}
        {...CHOICE}
      />
      <Select
        label="Cost"
        placeholder="Any"
        data={toOptions(COSTS)}
        value={query.get("cost")}
        onChange={(cost) => set({ cost })}
        {...CHOICE}
      />
      <FilterInput
        label="Max. price"
        placeholder={unit ?? "Select a type first"}
        title={unit}
        disabled={unit === undefined}
        inputMode="decimal"
        value={query.get("max") ?? ""}
        onChange={(max) => set({ max }, true)}
      />
      <Select
        label="Health"
        placeholder="Reliable"
        data={toOptions(HEALTH)}
        value={query.get("health")}
        onChange={(health) => set({ health })}
        {...CHOICE}
      />
      <Select
        label="Sort by"
        data={[...ORDERS].map(([value, { label }]) => ({ value, label }))}
        value={query.get("order") ?? ORDER_DEFAULT}
        onChange={(order) => set({ order: order === ORDER_DEFAULT ? null : order })}
        allowDeselect={false}
      />
    </Filters>
  );
}

const FOLDED: readonly FilterName[] = ["modality", "can", "publisher", "by", "cost", "max", "health", "order"];

const CHOICE = { clearable: true } as const;

function ModelTable({ models }: { readonly models: readonly ModelRowFragment[] }) {
  return (
    <Wide label="Models">
      <Table highlightOnHover verticalSpacing="xs" className="slim models-table">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={{ base: "62%", sm: "38%" }}>Model</Table.Th>
            <Table.Th visibleFrom="sm">Type</Table.Th>
            <Table.Th visibleFrom="sm">Capabilities</Table.Th>
            <Table.Th ta="right" visibleFrom="sm">
              Context
            </Table.Th>
            <Table.Th>Price in credits</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {models.map((model) => (
            <Table.Tr key={model.id}>
              <Table.Td miw={{ sm: 220 }}>
                <Anchor component={Link} to={addressOfModel(model.restId)} fw={600} fz="inherit" className="any-wrap">
                  <bdi>
                    <Text span inherit lineClamp={2}>
                      {model.title}
                    </Text>
                  </bdi>
                </Anchor>
                <Text size="xs" c="dimmed" className="any-wrap">
                  {model.restId}
                </Text>
                <Text size="xs" c="dimmed" hiddenFrom="sm">
                  {[MODALITIES.get(model.modality), ...model.capabilities.map((one) => CAPABILITIES.get(one)?.toLowerCase())].join(", ")}
                </Text>
                <Marks model={model} />
              </Table.Td>
              <Table.Td visibleFrom="sm">{MODALITIES.get(model.modality)}</Table.Td>
              <Table.Td visibleFrom="sm">
                <Text size="xs" c="dimmed">
                  {model.capabilities.map((capability) => CAPABILITIES.get(capability)?.toLowerCase()).join(", ") || "–"}
                </Text>
              </Table.Td>
              <Table.Td ta="right" visibleFrom="sm">
                {model.contextLength?.toLocaleString("en") ?? "–"}
              </Table.Td>
              <Table.Td className="price">
                <Prices model={model} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}

/** The first input price and the first output price. The page of the model has all. */
function Prices({ model: { pricing, flags, modality } }: { readonly model: ModelRowFragment }) {
  if (!flags.isPaid) return <Text size="sm">Free</Text>;
  const prices = pricesOf(pricing);
  const shown = [
    prices.find(({ kind }) => kind.startsWith("input") || kind === "characters"),
    prices.find(({ kind }) => isOutput(kind, modality)),
  ];
  return (
    <>
      {shown.map(
        (price) =>
          price && (
            <Text key={price.kind} size="sm">
              <span title={price.price}>{formatCredits(price.price)}</span>{" "}
              <Text span size="xs" c="dimmed">
                {price.per}, {price.traits.label.toLowerCase()}
              </Text>
            </Text>
          ),
      )}
    </>
  );
}

/** For image models the output price is that of images. */
const isOutput = (kind: string, modality: string) =>
  (modality === "IMAGE" ? kind === "outputImageTokens" : kind.startsWith("output")) || kind === "imageRequests";
