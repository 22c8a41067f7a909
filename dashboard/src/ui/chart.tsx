/** Bars on top of each other, one stack a day or hour. By keyboard a stack is a button; beside the picture stands a table for who cannot see it. */
import { Group, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { scaleBand, scaleLinear } from "@visx/scale";
import { useState } from "react";

export interface Stack {
  /** The beginning of its time, as ISO text. */
  readonly from: string;
  /** By the name of the series. */
  readonly values: ReadonlyMap<string, number>;
}

export interface StackedBarsProps {
  /** What is shown, such as "Credits a day by model". */
  readonly label: string;
  readonly stacks: readonly Stack[];
  /** In the order of the stack, from below. */
  readonly series: readonly string[];
  readonly format: (value: number) => string;
  readonly formatTime: (from: string) => string;
  readonly onSelect?: (stack: Stack) => void;
  readonly height?: number;
}

/** As far apart as eight colours can be for those who tell few apart (after Okabe and Ito), on both grounds. */
export const SERIES_COLORS = ["#2f7fd1", "#e08a1e", "#1a9e77", "#c65a9a", "#8a63d2", "#b8a21d", "#5aa9c9", "#8b95a3"];

const LABEL = { fill: "var(--soft)", fontSize: 11, fontFamily: "var(--font)" };
const MARGIN = { top: 8, right: 4, bottom: 24, left: 52 };

export default function StackedBars({ label, stacks, series, format, formatTime, onSelect, height = 220 }: StackedBarsProps) {
  const { ref, width } = useElementSize();
  const [pointed, setPointed] = useState<number | null>(null);
  const sums = stacks.map(({ values }) => [...values.values()].reduce((sum, value) => sum + value, 0));
  const x = scaleBand({
    domain: stacks.map(({ from }) => from),
    range: [MARGIN.left, Math.max(width - MARGIN.right, MARGIN.left + 1)],
    padding: 0.2,
  });
  const y = scaleLinear({ domain: [0, Math.max(...sums, 0) || 1], range: [height - MARGIN.bottom, MARGIN.top], nice: 4 });
  const colorOf = (name: string) => SERIES_COLORS[series.indexOf(name) % SERIES_COLORS.length] ?? "#8b95a3";
  const shown = pointed === null ? null : stacks[pointed];
  return (
    <figure style={{ margin: 0 }} aria-label={label}>
      <div ref={ref} style={{ height, position: "relative" }} onPointerLeave={() => setPointed(null)}>
        {width > 0 && (
          <svg width={width} height={height} aria-hidden="true">
            {y.ticks(4).map((tick) => (
              <g key={tick} transform={`translate(0 ${y(tick)})`}>
                <line x1={MARGIN.left} x2={width - MARGIN.right} stroke="var(--line)" />
                <text x={MARGIN.left - 4} dy="0.33em" textAnchor="end" {...LABEL}>
                  {format(tick)}
                </text>
              </g>
            ))}
            {stacks.map((stack, index) => (
              <g key={stack.from} opacity={pointed === null || pointed === index ? 1 : 0.55}>
                {layers(stack, series).map(({ name, from, to }) => (
                  <rect
                    key={name}
                    x={x(stack.from)}
                    width={x.bandwidth()}
                    y={y(to)}
                    height={Math.max(y(from) - y(to), 0)}
                    fill={colorOf(name)}
                  />
                ))}
              </g>
            ))}
            {stacks
              .filter((_, index) => index % Math.ceil(stacks.length / Math.max(width / 90, 1)) === 0)
              .map(({ from }) => (
                <text key={from} x={(x(from) ?? 0) + x.bandwidth() / 2} y={height - 8} textAnchor="middle" {...LABEL}>
                  {formatTime(from)}
                </text>
              ))}
          </svg>
        )}
        {width > 0 &&
          stacks.map((stack, index) => (
            <button
              key={stack.from}
              type="button"
              aria-label={`${formatTime(stack.from)}: ${format(sums[index] ?? 0)}`}
              onPointerEnter={() => setPointed(index)}
              onFocus={() => setPointed(index)}
              onBlur={() => setPointed(null)}
              onClick={() => onSelect?.(stack)}
              disabled={!onSelect && (sums[index] ?? 0) === 0}
              style={{
                position: "absolute",
                left: x(stack.from),
                top: 0,
                width: x.bandwidth(),
                height: height - MARGIN.bottom,
                background: "transparent",
                border: 0,
                padding: 0,
                cursor: onSelect ? "pointer" : "default",
              }}
            />
          ))}
      </div>
      <figcaption>
        <Group gap="md" mih={22} mt={4}>
          {shown ? (
            <Text size="sm" component="div">
              <strong>{formatTime(shown.from)}</strong>{" "}
              {[...shown.values]
                .filter(([, value]) => value > 0)
                .map(([name, value]) => `${name} ${format(value)}`)
                .join(", ") || "nothing"}
            </Text>
          ) : (
            series.map((name) => (
              <Group key={name} gap={6} wrap="nowrap" maw="100%">
                <span style={{ width: 10, height: 10, borderRadius: 3, background: colorOf(name), flex: "none" }} />
                <Text size="sm" c="dimmed" className="any-wrap">
                  {name}
                </Text>
              </Group>
            ))
          )}
        </Group>
      </figcaption>
    </figure>
  );
}

function layers({ values }: Stack, series: readonly string[]) {
  let height = 0;
  return series.flatMap((name) => {
    const value = values.get(name) ?? 0;
    const from = height;
    height += value;
    return value > 0 ? [{ name, from, to: height }] : [];
  });
}
