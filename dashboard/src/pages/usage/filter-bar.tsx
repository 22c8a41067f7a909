/** Filters, stored in the address, so that they can be shared as a link and undone with the back button. */
import { Button, Select, TextInput } from "@mantine/core";
import { useMemo } from "react";
import { useSearchParams } from "react-router";
import { useQuery } from "urql";
import { UsageChoicesDocument, UsageKeyDocument } from "../../client/generated/graphql.js";
import { FilterInput } from "../../ui/filter-input.js";
import { Filters } from "../../ui/filters.js";
import { MODALITY_OPTIONS } from "../../ui/modalities.js";
import { type AppliedFilters, FILTER_NAMES, type FilterName, SPAN_DEFAULT, SPANS, STATUSES } from "./filters.js";

const CUSTOM = "custom";

interface KeyChoice {
  readonly value: string;
  readonly restId: string;
  readonly label: string;
}

/** Keys with usage in the selected time, plus the selected key. */
export function useKeys(filters: AppliedFilters, chosen: string | null): readonly KeyChoice[] {
  const [{ data }] = useChoices(filters);
  const used = useMemo(
    () =>
      (data?.me?.keys ?? []).flatMap(({ apiKeyId, apiKey }) =>
        apiKeyId === null ? [] : [{ value: apiKey?.id ?? apiKeyId, restId: apiKeyId, label: apiKey?.name ?? apiKeyId }],
      ),
    [data],
  );
  const isKnown = chosen === null || used.some(({ value, restId }) => value === chosen || restId === chosen);
  const [one] = useQuery({ query: UsageKeyDocument, variables: { id: chosen ?? "" }, pause: isKnown || data === undefined });
  const node = one.data?.node;
  if (isKnown) return used;
  return [
    ...used,
    node?.__typename === "ApiKey"
      ? { value: chosen, restId: node.restId, label: node.name }
      : { value: chosen, restId: chosen, label: chosen },
  ];
}

function useChoices({ filter: { from, to } }: AppliedFilters) {
  return useQuery({ query: UsageChoicesDocument, variables: useMemo(() => ({ filter: { from, ...(to && { to }) } }), [from, to]) });
}

export function FilterBar({ filters, keys }: { readonly filters: AppliedFilters; readonly keys: readonly KeyChoice[] }) {
  const [query, setQuery] = useSearchParams();
  const [{ data }] = useChoices(filters);
  const model = query.get("model");
  const models = useMemo(() => {
    const used = (data?.me?.models ?? []).flatMap(({ modelId }) => (modelId === null ? [] : [modelId]));
    return model === null || used.includes(model) ? used : [...used, model];
  }, [data, model]);
  const set = (values: Partial<Record<FilterName, string | null>>, isTyped = false) =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        for (const [name, value] of Object.entries(values)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      },
      { replace: isTyped, preventScrollReset: true },
    );
  const key = query.get("key");
  const isFiltered = FILTER_NAMES.some((name) => query.has(name));
  return (
    <Filters
      count={FILTER_NAMES.filter((name) => name !== "q" && query.has(name)).length}
      search={
        <FilterInput
          label="Search"
          placeholder="Model, key or request ID"
          type="search"
          value={query.get("q") ?? ""}
          onChange={(q) => set({ q }, true)}
        />
      }
    >
      <TimeSelect filters={filters} onChange={(times) => set(times)} />
      <Select
        label="Key"
        placeholder="Any key"
        data={keys.map(({ value, label }) => ({ value, label }))}
        value={keys.find(({ value, restId }) => value === key || restId === key)?.value ?? null}
        onChange={(value) => set({ key: value })}
        {...CHOICE}
      />
      <Select label="Model" placeholder="Any model" data={models} value={model} onChange={(value) => set({ model: value })} {...CHOICE} />
      <Select
        label="Type"
        placeholder="Any type"
        data={MODALITY_OPTIONS}
        value={query.get("modality")}
        onChange={(value) => set({ modality: value })}
        {...CHOICE}
      />
      <Select
        label="Status"
        placeholder="Any"
        data={[...STATUSES].map(([value, label]) => ({ value, label }))}
        value={query.get("status")}
        onChange={(value) => set({ status: value })}
        {...CHOICE}
        searchable={false}
      />
      {isFiltered && (
        <Button variant="subtle" size="sm" onClick={() => setQuery({}, { preventScrollReset: true })}>
          Clear filters
        </Button>
      )}
    </Filters>
  );
}

const CHOICE = {
  size: "sm",
  searchable: true,
  clearable: true,
  nothingFoundMessage: "No results",
} as const;

function TimeSelect({
  filters,
  onChange,
}: {
  readonly filters: AppliedFilters;
  readonly onChange: (times: { readonly from?: string | null; readonly to?: string | null }) => void;
}) {
  const [query] = useSearchParams();
  const from = query.get("from");
  const isCustom = query.has("to") || (from !== null && !SPANS.has(from));
  return (
    <>
      <Select
        label="Time"
        data={[...[...SPANS].map(([value, { label }]) => ({ value, label })), { value: CUSTOM, label: "Custom range" }]}
        value={isCustom ? CUSTOM : (from ?? SPAN_DEFAULT)}
        onChange={(value) =>
          onChange(
            value === CUSTOM
              ? { from: new Date(filters.from).toISOString(), to: new Date(filters.to ?? Date.now()).toISOString() }
              : { from: value === SPAN_DEFAULT ? null : value, to: null },
          )
        }
        allowDeselect={false}
      />
      {isCustom && (
        <>
          <Moment label="From" value={filters.from} onChange={(value) => onChange({ from: value })} />
          <Moment label="To" value={filters.to} onChange={(value) => onChange({ to: value })} />
        </>
      )}
    </>
  );
}

/** Input in local time, to the minute. */
function Moment({
  label,
  value,
  onChange,
}: {
  readonly label: string;
  readonly value: number | null;
  readonly onChange: (value: string | null) => void;
}) {
  const shown = value === null ? "" : toLocal(value);
  return (
    <TextInput
      key={shown}
      label={label}
      type="datetime-local"
      defaultValue={shown}
      onBlur={({ target }) => {
        if (target.value === shown) return;
        const moment = Date.parse(target.value);
        onChange(Number.isNaN(moment) ? null : new Date(moment).toISOString());
      }}
    />
  );
}

const MINUTE_MS = 60_000;

function toLocal(moment: number): string {
  return new Date(moment - new Date(moment).getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}
