import { Button, Group, Select } from "@mantine/core";
import { useSearchParams } from "react-router";
import { FilterInput } from "../../ui/filter-input.js";
import { CODES, FILTER_NAMES, type FilterName, readDay, SPAN_DEFAULT, SPANS, STATUSES } from "./filters.js";

const CHOICE = { size: "sm", w: 130, clearable: true, nothingFoundMessage: "No results" } as const;

const DAY = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" });

/** `keys`: null where keys cannot be chosen. */
export function FilterBar({ keys }: { readonly keys: readonly { readonly id: string; readonly name: string }[] | null }) {
  const [query, setQuery] = useSearchParams();
  const set = (name: FilterName, value: string | null, isTyped = false) =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        if (value) next.set(name, value);
        else next.delete(name);
        if (name === "from") next.delete("day");
        next.delete("after");
        return next;
      },
      { replace: isTyped, preventScrollReset: true },
    );
  const clear = () =>
    setQuery((before) => {
      const next = new URLSearchParams(before);
      for (const name of [...FILTER_NAMES, "after"]) next.delete(name);
      return next;
    });
  const key = query.get("key");
  const day = readDay(query);
  const spans = [...SPANS].map(([value, { label }]) => ({ value, label }));
  return (
    <Group gap="sm" align="flex-end" component="search">
      <FilterInput
        label="Request ID"
        placeholder="Request or generation ID"
        type="search"
        maxLength={128}
        value={query.get("q") ?? ""}
        onChange={(id) => set("q", id.trim(), true)}
        style={{ flex: "1 1 11rem" }}
        maw="24rem"
      />
      <Select
        label="Status"
        placeholder="Any"
        data={[...STATUSES].map(([value, { label }]) => ({ value, label }))}
        value={query.get("status")}
        onChange={(value) => set("status", value)}
        {...CHOICE}
        w={115}
      />
      <Select
        label="Error code"
        placeholder="Any"
        data={[...CODES.keys()]}
        value={query.get("code")}
        onChange={(value) => set("code", value)}
        {...CHOICE}
        w={195}
        searchable
      />
      {keys !== null && (
        <Select
          label="Key"
          placeholder="Any key"
          data={keys.map(({ id, name }) => ({ value: id, label: name || "Unnamed key" }))}
          value={keys.some(({ id }) => id === key) ? key : null}
          onChange={(value) => set("key", value)}
          {...CHOICE}
          searchable
        />
      )}
      <FilterInput
        label="Model"
        placeholder="Model ID"
        value={query.get("model") ?? ""}
        onChange={(model) => set("model", model.trim(), true)}
        w={145}
      />
      <Select
        label="Time"
        data={day ? [{ value: "day", label: DAY.format(day.from) }, ...spans] : spans}
        value={day ? "day" : SPANS.has(query.get("from") ?? "") ? query.get("from") : SPAN_DEFAULT}
        onChange={(value) => value !== "day" && set("from", value === SPAN_DEFAULT ? null : value)}
        allowDeselect={false}
        w={150}
      />
      {FILTER_NAMES.some((name) => query.has(name)) && (
        <Button variant="subtle" size="sm" onClick={clear}>
          Clear filters
        </Button>
      )}
    </Group>
  );
}
