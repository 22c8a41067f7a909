/** A question before what cannot be undone: what it breaks stands there, and the button says what it does. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import type { CombinedError } from "urql";
import { Failure } from "./states.js";

export interface ConfirmProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Such as "Revoke the key". */
  readonly action: string;
  /** Answers with the error that it met; the dialog then stays. */
  readonly onConfirm: () => Promise<CombinedError | undefined>;
  readonly isDisabled?: boolean;
  readonly color?: "red" | "blue";
  /** Opens it. */
  readonly trigger: (open: () => void) => ReactNode;
}

export function Confirm({ title, children, action, onConfirm, isDisabled = false, color = "red", trigger }: ConfirmProps) {
  const [isOpen, { open, close }] = useDisclosure();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError>();
  const confirm = async () => {
    setBusy(true);
    const met = await onConfirm();
    setBusy(false);
    setError(met);
    if (!met) close();
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
