/** Confirmation dialog for irreversible actions. It says what the action breaks, and its button names the action. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import type { CombinedError } from "urql";
import { Failure } from "./states.js";

export interface ConfirmProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Label of the button, such as "Revoke key". */
  readonly action: string;
  /** Resolves with an error to keep the dialog open and show it. */
  readonly onConfirm: () => Promise<CombinedError | undefined>;
  readonly isDisabled?: boolean;
  readonly color?: "red" | "blue";
  /** Renders the button that opens the dialog. */
  readonly trigger: (open: () => void) => ReactNode;
}

export function Confirm({ title, children, action, onConfirm, isDisabled = false, color = "red", trigger }: ConfirmProps) {
  const [isOpen, { open, close }] = useDisclosure();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const confirm = async () => {
    setBusy(true);
    const failure = await onConfirm();
    setBusy(false);
    setError(failure);
    if (!failure) close();
  };
  return (
    <>
      {trigger(() => {
        setError(undefined);
        open();
      })}
      <Modal opened={isOpen} onClose={close} title={title} centered>
        <Stack>
          <div className="any-wrap">{children}</div>
          {error && <Failure error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button color={color} loading={isBusy} disabled={isDisabled} onClick={confirm}>
              {action}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
