/** A form in a dialog. What the gateway says that is of no field stands above the fields. */
import { Button, Group, Stack } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";
import type { ServerForm } from "./server-form.js";
import { Failure } from "./states.js";

export interface DialogFormProps {
  readonly form: ServerForm;
  /** Such as "Make the key". */
  readonly action: string;
  /** Until it resolves it is not called again. */
  readonly onSubmit: () => Promise<void>;
  readonly onCancel: () => void;
  /** What stands above all else, such as what was changed elsewhere. */
  readonly above?: ReactNode;
  readonly children: ReactNode;
}

export function DialogForm({ form, action, onSubmit, onCancel, above, children }: DialogFormProps) {
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    await onSubmit();
    setBusy(false);
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        {above}
        {form.rest && <Failure error={form.rest} />}
        {children}
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={isBusy}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
