import { MultiSelect, type MultiSelectProps } from "@mantine/core";

export function ModelsSelect(props: MultiSelectProps) {
  return <MultiSelect searchable clearable hidePickedOptions limit={100} nothingFoundMessage="No models found" {...props} />;
}
