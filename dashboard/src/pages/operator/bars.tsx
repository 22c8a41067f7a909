/** Frame of a chart of bars: the drawing, and its summary below. */
import { Group, Text } from "@mantine/core";
import type { ReactNode } from "react";

export interface BarsProps {
  /** Units of the drawing, which is stretched to the width of the card. */
  readonly width: number;
  /** Pixels. */
  readonly height: number;
  /** Summary of the chart, also its accessible name. */
  readonly text: string;
  /** Before the text: the start of the time range. */
  readonly start?: ReactNode;
  readonly children: ReactNode;
}

export function Bars({ width, height, text, start, children }: BarsProps) {
  return (
    <>
      <svg
        width="100%"
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={text}
        style={{ display: "block", borderBottom: "1px solid var(--line)" }}
      >
        {children}
      </svg>
      <Group justify="space-between" align="flex-start" wrap="nowrap" mt={4}>
        <Text size="xs" c="dimmed">
          {start}
          {text}
        </Text>
        <Text size="xs" c="dimmed">
          now
        </Text>
      </Group>
    </>
  );
}
