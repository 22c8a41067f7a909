/** Models to choose among, found by parts of their names. */
import { MultiSelect, type MultiSelectProps } from "@mantine/core";

export function ModelsSelect(props: MultiSelectProps) {
  return <MultiSelect searchable clearable hidePickedOptions limit={100} nothingFoundMessage="No model is called that" {...props} />;
}
