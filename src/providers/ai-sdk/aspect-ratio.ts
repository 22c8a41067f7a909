/** Sizes for upstreams that know shapes only. */

/** The shapes that vendors have in common. */
const RATIOS = ["1:1", "4:3", "3:4", "3:2", "2:3", "16:9", "9:16", "21:9"] as const;

/** The shape that is nearest to a size, both counted in doublings. */
export function nearestAspectRatio(width: number, height: number): (typeof RATIOS)[number] {
  const wanted = Math.log2(width / height);
  const distance = (ratio: string) => {
    const [across = 1, down = 1] = ratio.split(":").map(Number);
    return Math.abs(Math.log2(across / down) - wanted);
  };
  return [...RATIOS].sort((one, other) => distance(one) - distance(other))[0] ?? "1:1";
}
