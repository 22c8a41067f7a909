/** Drawer with one entry of a list, which stays beside it. */
import { Drawer } from "@mantine/core";
import type { ReactNode } from "react";

export interface EntryDrawerProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function EntryDrawer({ title, onClose, children }: EntryDrawerProps) {
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="min(36rem, 100%)"
      title={title}
      closeButtonProps={{ "aria-label": "Close" }}
      transitionProps={{ duration: 0 }}
    >
      {children}
    </Drawer>
  );
}
