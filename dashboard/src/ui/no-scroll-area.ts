/** Replaces Mantine's ScrollArea in the bundle (vite.config.ts). Tables scroll in `Wide`. */
import type { ReactNode } from "react";

export function ScrollArea({ children }: { readonly children?: ReactNode }): ReactNode {
  return children;
}
