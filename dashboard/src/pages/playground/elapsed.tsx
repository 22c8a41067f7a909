import { Text } from "@mantine/core";
import { useInterval } from "@mantine/hooks";
import { useState } from "react";

/** Timer that starts when it is mounted. */
export function Elapsed() {
  const [seconds, setSeconds] = useState(0);
  useInterval(() => setSeconds((before) => before + 1), 1_000, { autoInvoke: true });
  return (
    <Text size="sm" className="mono" aria-hidden>
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, "0")}
    </Text>
  );
}
