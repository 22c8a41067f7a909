/**
 * Stacked bar chart by day or hour. The caption describes the bar under the pointer or, for keyboards, the bar selected with the arrow keys:
 * the chart has the role of a slider. Enter or a click opens the requests of the bar.
 */
import { Anchor, Box, Group, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { scaleBand, scaleLinear } from "@visx/scale";
import { useState } from "react";
import { greatest } from "./amounts.js";

export interface Stack {
  /** Start of the day or hour, as ISO text. */
  readonly from: string;
  /** Keys are names of series. */
  readonly values: ReadonlyMap<string, number>;
}

export interface StackedBarsProps {
  /** For example "Credits per day by model". */
  readonly label: string;
  readonly stacks: readonly Stack[];
  /** From the bottom of the stack to its top. */
  readonly series: readonly string[];
  readonly format: (value: number) => string;
  readonly formatTime: (from: string) => string;
  readonly onSelect?: (stack: Stack) => void;
  readonly height: number;
}

/** Eight colours that remain distinct for colour-blind readers (after Okabe and Ito), in both schemes. */
const SERIES_COLORS = ["#2f7fd1", "#e08a1e", "#1a9e77", "#c65a9a", "#8a63d2", "#b8a21d", "#5aa9c9", "#8b95a3"];

const LABEL = { fill: "var(--soft)", fontSize: 11, fontFamily: "var(--font)" };
const NEXT = new Map<string, (at: number, last: number) => number>([
  ["ArrowLeft", (at) => at - 1],
  ["ArrowRight", (at) => at + 1],
  ["ArrowDown", (at) => at - 1],
  ["ArrowUp", (at) => at + 1],
  ["Home", () => 0],
  ["End", (_, last) => last],
]);

const MARGIN = { top: 8, right: 4, bottom: 24, left: 52 };
/** Pixels of the widest digit in any font that the labels may use. */
const DIGIT_WIDTH = 7.2;

export default function StackedBars({ label, stacks, series, format, formatTime, onSelect, height }: StackedBarsProps) {
  const { ref, width } = useElementSize();
  const [pointed, setPointed] = useState<number | null>(null);
  const sums = stacks.map(({ values }) => [...values.values()].reduce((sum, value) => sum + value, 0));
  const y = scaleLinear({ domain: [0, greatest(sums) || 1], range: [height - MARGIN.bottom, MARGIN.top], nice: 4 });
  // Very small costs have long labels.
  const left = Math.max(MARGIN.left, 6 + DIGIT_WIDTH * greatest(y.ticks(4).map((tick) => format(tick).length)));
  const x = scaleBand({
    domain: stacks.map(({ from }) => from),
    range: [left, Math.max(width - MARGIN.right, left + 1)],
    padding: 0.2,
  });
  const colorOf = (name: string) => SERIES_COLORS[series.indexOf(name) % SERIES_COLORS.length] ?? "#8b95a3";
  const shown = pointed === null ? null : stacks[pointed];
  const at = pointed ?? Math.max(stacks.length - 1, 0);
  const point = (pixels: number) => {
    const index = Math.floor((pixels - left) / x.step());
    setPointed(index >= 0 && index < stacks.length ? index : null);
  };
  return (
    <figure style={{ margin: 0 }} aria-label={label}>
      <Box
        ref={ref}
        role="slider"
        tabIndex={0}
        aria-label={`${label}: select a time`}
        aria-valuemin={0}
        aria-valuemax={Math.max(stacks.length - 1, 0)}
        aria-valuenow={at}
        aria-valuetext={stacks[at] ? `${formatTime(stacks[at].from)}: ${format(sums[at] ?? 0)}` : undefined}
        style={{ height, position: "relative", cursor: onSelect ? "pointer" : "default", touchAction: "pan-y" }}
        onPointerMove={(event) => point(event.nativeEvent.offsetX)}
        onPointerDown={(event) => point(event.nativeEvent.offsetX)}
        onPointerLeave={({ pointerType }) => pointerType === "mouse" && setPointed(null)}
        onClick={(event) => (event.nativeEvent as PointerEvent).pointerType !== "touch" && shown && onSelect?.(shown)}
        onFocus={() => setPointed((before) => before ?? at)}
        onBlur={() => setPointed(null)}
        onKeyDown={(event) => {
          const next = NEXT.get(event.key)?.(at, stacks.length - 1);
          if (next !== undefined) {
            event.preventDefault();
            setPointed(Math.min(Math.max(next, 0), stacks.length - 1));
          } else if (event.key === "Enter" && stacks[at]) onSelect?.(stacks[at]);
        }}
      >
        {width > 0 && (
          <svg width={width} height={height} aria-hidden="true" style={{ pointerEvents: "none" }}>
            {y.ticks(4).map((tick) => (
              <g key={tick} transform={`translate(0 ${y(tick)})`}>
                <line x1={left} x2={width - MARGIN.right} stroke="var(--line)" />
                <text x={left - 4} dy="0.33em" textAnchor="end" {...LABEL}>
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
      </Box>
      <figcaption>
        <Group gap="md" mih={22} mt={4}>
          {shown ? (
            <Text size="sm" component="div">
              <strong>{formatTime(shown.from)}</strong>{" "}
              {[...shown.values]
                .filter(([, value]) => value > 0)
                .map(([name, value]) => `${name} ${format(value)}`)
                .join(", ") || "no usage"}{" "}
              {onSelect && (
                <Anchor
                  component="button"
                  type="button"
                  size="sm"
                  onMouseDown={(event) => event.preventDefault()}
                  onClick={() => onSelect(shown)}
                >
                  View requests
                </Anchor>
              )}
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
