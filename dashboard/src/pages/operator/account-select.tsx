/** Filter by one account, found by a part of its handle, name or e-mail address. */
import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useQuery } from "urql";
import { type AccountFilter, OperatorAccountChoicesDocument, OperatorAccountNameDocument } from "../../client/generated/graphql.js";

export interface AccountSelectProps {
  readonly label: string;
  /** ID of the account; null: all accounts. */
  readonly value: string | null;
  readonly filter?: AccountFilter;
  readonly onChange: (id: string | null) => void;
}

export function AccountSelect({ label, value, filter, onChange }: AccountSelectProps) {
  const [search, setSearch] = useState("");
  const [debounced] = useDebouncedValue(search.trim(), 200);
  const [chosen] = useQuery({ query: OperatorAccountNameDocument, variables: { id: value ?? "" }, pause: value === null });
  const name = value === null ? null : (chosen.data?.account?.handle ?? value);
  // The input holds the chosen name until a person types.
  const asked = debounced === name ? "" : debounced;
  const [{ data }] = useQuery({
    query: OperatorAccountChoicesDocument,
    variables: { ...(asked !== "" && { search: asked }), ...(filter && { filter }) },
  });
  const found = (data?.accounts?.nodes ?? []).map(({ id, handle, email }) => ({
    value: id,
    label: email === null || email === handle ? handle : `${handle} (${email})`,
  }));
  const isMissing = value !== null && name !== null && !found.some((each) => each.value === value);
  return (
    <Select
      label={label}
      placeholder="Any"
      data={isMissing ? [{ value, label: name }, ...found] : found}
      value={value}
      onChange={onChange}
      searchable
      clearable
      searchValue={search}
      onSearchChange={setSearch}
      // The gateway has searched already.
      filter={({ options }) => options}
      nothingFoundMessage="No accounts found"
      clearButtonProps={{ "aria-label": `Clear ${label.toLowerCase()}` }}
      maxDropdownHeight={280}
      style={{ flex: "1 1 8rem" }}
    />
  );
}
