/** Dialog with a form. Esc, a click beside it and its close button ask before they drop input. */
import { Button, Group, Modal, type ModalProps, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { secretModal } from "./secret-modal.js";

export interface FormModalProps extends ModalProps {
  /** While a secret is shown for the only time, only the button of the dialog closes it. */
  readonly isSecretShown?: boolean;
}

export function FormModal({ isSecretShown = false, onClose, children, ...props }: FormModalProps) {
  const [isAsking, setAsking] = useState(false);
  const hasInput = useRef(false);
  useEffect(() => {
    if (props.opened) hasInput.current = false;
  }, [props.opened]);
  /** After the event: both dialogs hear a press of Esc, and one press must not open and close the question. */
  const ask = (isAsked: boolean) => setTimeout(() => setAsking(isAsked));
  const discard = () => {
    setAsking(false);
    onClose();
  };
  const leave = () => {
    if (hasInput.current && !isSecretShown) ask(true);
    else onClose();
  };
  return (
    <>
      <Modal
        {...props}
        {...secretModal(isSecretShown)}
        closeOnClickOutside={!isSecretShown}
        closeOnEscape={!isSecretShown && !isAsking}
        onClose={leave}
      >
        {/* Events of the fields bubble here. */}
        <div
          onInput={() => {
            hasInput.current = true;
          }}
        >
          {children}
        </div>
      </Modal>
      <Modal opened={isAsking} onClose={() => ask(false)} title="Discard changes?" centered zIndex={300}>
        <Text>Your changes have not been saved.</Text>
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={() => ask(false)} data-autofocus>
            Keep editing
          </Button>
          <Button color="red" onClick={discard}>
            Discard
          </Button>
        </Group>
      </Modal>
    </>
  );
}
