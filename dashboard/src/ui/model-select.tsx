/** Models to choose among, found by parts of their names. */
import { MultiSelect, type MultiSelectProps } from "@mantine/core";
import { useMemo } from "react";

export interface ChoosableModel {
  readonly restId: string;
  readonly title: string;
}

export function ModelsSelect({ models, ...props }: { readonly models: readonly ChoosableModel[] } & Omit<MultiSelectProps, "data">) {
  const data = useMemo(() => models.map(({ restId }) => restId), [models]);
  return (
    <MultiSelect searchable clearable hidePickedOptions limit={100} nothingFoundMessage="No model is called that" data={data} {...props} />
  );
}
