/** Maps the colours of Mantine to the gateway's design tokens, in both colour schemes. */
import {
  type CSSVariablesResolver,
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  type VariantColorsResolver,
} from "@mantine/core";

const TOKENS: ReadonlyMap<string, string> = new Map([
  ["blue", "var(--strong)"],
  ["red", "var(--bad)"],
  ["green", "var(--good)"],
  ["orange", "var(--warn)"],
  ["yellow", "var(--warn)"],
  ["gray", "var(--soft)"],
]);

const mixed = (token: string, percent: number) => `color-mix(in srgb, ${token} ${percent}%, transparent)`;

const variantColorResolver: VariantColorsResolver = (input) => {
  const token = TOKENS.get(input.color ?? input.theme.primaryColor);
  const usual = defaultVariantColorsResolver(input);
  if (token === undefined) return usual;
  switch (input.variant) {
    case "filled":
      return {
        ...usual,
        background: token,
        hover: `color-mix(in srgb, ${token} 88%, var(--ink))`,
        color: "var(--on-strong)",
        border: "1px solid transparent",
      };
    case "light":
      return { ...usual, background: mixed(token, 11), hover: mixed(token, 18), color: token };
    case "subtle":
    case "transparent":
      return { ...usual, hover: mixed(token, 11), color: token };
    case "outline":
      return { ...usual, hover: mixed(token, 11), color: token, border: `1px solid ${token}` };
    default:
      return usual;
  }
};

const BLUES: MantineColorsTuple = [
  "#e9f3fd",
  "#d3e5f8",
  "#a5c9f0",
  "#8dbdf2",
  "#6fb1f5",
  "#3082dd",
  "#207adc",
  "#1168c3",
  "#0b5cad",
  "#004f98",
];

/** Colours of the dark scheme, from text to background. The seventh is the background of inputs. */
const DARKS: MantineColorsTuple = [
  "#e8edf4",
  "#a3b1c4",
  "#8896aa",
  "#5d6b7d",
  "#36424f",
  "#222c39",
  "#10161e",
  "#19212c",
  "#121922",
  "#0d131a",
];

const TITLE = { title: { fontWeight: 650 } };

export const theme = createTheme({
  fontFamily: "var(--font)",
  fontFamilyMonospace: "var(--mono)",
  headings: { fontFamily: "var(--font)", fontWeight: "650" },
  primaryColor: "blue",
  primaryShade: { light: 8, dark: 4 },
  colors: { blue: BLUES, dark: DARKS },
  variantColorResolver,
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Badge: { defaultProps: { tt: "none" } },
    // A `header` in a dialog would count as a second banner of the page.
    ModalHeader: { defaultProps: { role: "presentation" } },
    DrawerHeader: { defaultProps: { role: "presentation" } },
    Modal: { defaultProps: { closeButtonProps: { "aria-label": "Close" } }, styles: TITLE },
    Drawer: { defaultProps: { closeButtonProps: { "aria-label": "Close" } }, styles: TITLE },
    Alert: { defaultProps: { closeButtonLabel: "Close" } },
    MultiSelect: { defaultProps: { clearButtonProps: { "aria-label": "Clear" } } },
    Select: { defaultProps: { clearButtonProps: { "aria-label": "Clear" } } },
  },
});

const SAME_IN_BOTH = {
  "--mantine-color-body": "var(--card)",
  "--mantine-color-text": "var(--ink)",
  "--mantine-color-bright": "var(--ink)",
  "--mantine-color-dimmed": "var(--soft)",
  "--mantine-color-default": "var(--card)",
  "--mantine-color-default-hover": "var(--hover)",
  "--mantine-color-default-color": "var(--ink)",
  "--mantine-color-default-border": "var(--line)",
  "--mantine-color-placeholder": "var(--soft)",
  "--mantine-color-error": "var(--bad)",
  "--mantine-color-anchor": "var(--strong)",
  "--mantine-primary-color-filled": "var(--strong)",
  "--mantine-primary-color-filled-hover": "color-mix(in srgb, var(--strong) 88%, var(--ink))",
  "--mantine-primary-color-contrast": "var(--on-strong)",
};

export const cssVariablesResolver: CSSVariablesResolver = () => ({ variables: {}, light: SAME_IN_BOTH, dark: SAME_IN_BOTH });
