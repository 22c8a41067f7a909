/** Form in a dialog. Errors that belong to no field are shown above the fields. */
import { Button, Group, Stack } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";
import type { ServerForm } from "./server-form.js";
import { Failure } from "./states.js";

export interface DialogFormProps {
  readonly form: ServerForm;
  /** Label of the button, such as "Create key". */
  readonly action: string;
  /** Not called again before it resolves. */
  readonly onSubmit: () => Promise<void>;
  readonly onCancel: () => void;
  /** Content above the fields, such as `ChangedElsewhere`. */
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
