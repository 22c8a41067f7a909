/** A filter that is typed: what is typed is asked for when the typing pauses. */
import { TextInput, type TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";

const TYPED_AFTER_MS = 400;

export interface FilterInputProps extends Omit<TextInputProps, "value" | "onChange"> {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function FilterInput({ value, onChange, ...props }: FilterInputProps) {
  const [typed, setTyped] = useState(value);
  const tell = useDebouncedCallback(onChange, TYPED_AFTER_MS);
  // The back button, or the button that clears, may have changed it.
  useEffect(() => setTyped(value), [value]);
  return (
    <TextInput
      maxLength={200}
      value={typed}
      onChange={({ target }) => {
        setTyped(target.value);
        tell(target.value);
      }}
      {...props}
    />
  );
}
