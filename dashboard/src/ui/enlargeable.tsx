/** Picture that opens in a dialog at its full size. */
import { Anchor, Group, Modal, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";

export interface EnlargeableProps {
  readonly url: string;
  readonly name: string;
  /** The small picture. */
  readonly children: ReactNode;
}

export function Enlargeable({ url, name, children }: EnlargeableProps) {
  const [isOpen, { open, close }] = useDisclosure();
  return (
    <>
      <UnstyledButton
        onClick={open}
        aria-label={`Enlarge ${name}`}
        aria-haspopup="dialog"
        display="block"
        w="100%"
        style={{ cursor: "zoom-in" }}
      >
        {children}
      </UnstyledButton>
      <Modal opened={isOpen} onClose={close} title={<span className="any-wrap">{name}</span>} size="auto" centered>
        <img className="enlarged" src={url} alt={name} />
        <Group justify="flex-end" mt="xs">
          <Anchor href={url} target="_blank" rel="noopener" size="sm">
            Open in a new tab
          </Anchor>
        </Group>
      </Modal>
    </>
  );
}
