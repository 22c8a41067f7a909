/** Requests by minute or hour: answered, client errors and server errors, stacked. */
import { Group, Text } from "@mantine/core";
import type { OperatorTrafficFragment } from "../../client/generated/graphql.js";
import { greatest } from "../../ui/amounts.js";
import { Card } from "../../ui/page.js";
import { Bars } from "./bars.js";

const BAR = 8;
const GAP = 2;
const HEIGHT = 96;
/** From the bottom up. */
const SERIES = [
  { field: "requests", label: "Answered", color: "var(--strong)" },
  { field: "clientErrors", label: "4xx", color: "var(--mantine-color-orange-6)" },
  { field: "serverErrors", label: "5xx", color: "var(--mantine-color-red-6)" },
] as const;
const TIME = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export function TrafficChart({ steps, isDay }: { readonly steps: OperatorTrafficFragment["steps"]; readonly isDay: boolean }) {
  const totals = steps.map((step) => SERIES.reduce((total, { field }) => total + step[field], 0));
  const most = Math.max(1, greatest(totals));
  const unit = isDay ? "hour" : "minute";
  const [first] = steps;
  const text = `${totals.reduce((total, count) => total + count, 0).toLocaleString("en")} requests, at most ${greatest(totals).toLocaleString("en")} per ${unit}.`;
  return (
    <Card
      title={`Requests per ${unit}`}
      actions={
        <Group gap="sm">
          {SERIES.map(({ label, color }) => (
            <Group key={label} gap={4}>
              <span aria-hidden style={{ width: 10, height: 10, borderRadius: 2, background: color }} />
              <Text size="xs" c="dimmed">
                {label}
              </Text>
            </Group>
          ))}
        </Group>
      }
    >
      <Bars width={steps.length * BAR} height={HEIGHT} text={text} start={first && `${TIME.format(new Date(first.from))} · `}>
        {steps.map((step, index) => {
          let top = HEIGHT;
          return (
            <g key={step.from}>
              {SERIES.map(({ field, color }) => {
                const height = (step[field] / most) * (HEIGHT - 2);
                top -= height;
                return height > 0 && <rect key={field} x={index * BAR} width={BAR - GAP} y={top} height={height} fill={color} />;
              })}
            </g>
          );
        })}
      </Bars>
    </Card>
  );
}
