/** A sound or a video that was made. There are no subtitles of it: nobody knows what is said in it but the one who asked. */
import { Box, type BoxProps } from "@mantine/core";
import type { ComponentProps } from "react";

export function Player({ label, ...props }: { readonly label: string } & Omit<ComponentProps<"audio">, "ref"> & BoxProps) {
  return <Box component="audio" controls aria-label={label} w="100%" {...props} />;
}

export function Film({ label, ...props }: { readonly label: string } & Omit<ComponentProps<"video">, "ref"> & BoxProps) {
  return <Box component="video" controls aria-label={label} w="100%" {...props} />;
}
