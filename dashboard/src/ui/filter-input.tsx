/** Text filter that reports its value when the typing pauses. */
import { TextInput, type TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";

const DEBOUNCE_MS = 400;

export interface FilterInputProps extends Omit<TextInputProps, "value" | "onChange"> {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function FilterInput({ value, onChange, ...props }: FilterInputProps) {
  const [typed, setTyped] = useState(value);
  const report = useDebouncedCallback(onChange, DEBOUNCE_MS);
  // The back button or the button that clears filters may have changed the value.
  useEffect(() => setTyped(value), [value]);
  return (
    <TextInput
      maxLength={200}
      value={typed}
      onChange={({ target }) => {
        setTyped(target.value);
        report(target.value);
      }}
      {...props}
    />
  );
}
