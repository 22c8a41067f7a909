/** What is wider than a phone: it scrolls by itself, and is reached by the keyboard for that. */
import { Box } from "@mantine/core";
import type { ReactNode } from "react";

export function Wide({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <Box component="section" className="wide" tabIndex={0} aria-label={label}>
      {children}
    </Box>
  );
}
