/** Players for generated audio and video, which have no captions. */
import { Box, type BoxProps } from "@mantine/core";
import type { ComponentProps } from "react";

export function Player({ label, ...props }: { readonly label: string } & Omit<ComponentProps<"audio">, "ref"> & BoxProps) {
  return <Box component="audio" controls aria-label={label} w="100%" {...props} />;
}

export function Film({ label, ...props }: { readonly label: string } & Omit<ComponentProps<"video">, "ref"> & BoxProps) {
  return <Box component="video" controls aria-label={label} w="100%" {...props} />;
}
