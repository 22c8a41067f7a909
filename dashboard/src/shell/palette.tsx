/** The command palette: every page, and the models and keys of the account by their names. */
import { Spotlight, type SpotlightActionData, spotlight } from "@mantine/spotlight";
import "@mantine/spotlight/styles.css";
import { MagnifyingGlassIcon } from "@heroicons/react/24/outline";
import { useEffect } from "react";
import { useNavigate } from "react-router";
import { useLive } from "./live.js";
import { addressOf, PAGES } from "./pages.js";

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const { me } = useLive();
  useEffect(() => spotlight.open(), []);
  const actions: SpotlightActionData[] = PAGES.filter(({ isForOperators }) => !isForOperators || me?.isOperator).map(
    ({ path, label, words, icon: Icon }) => ({
      id: path,
      label,
      keywords: words.split(" "),
      leftSection: <Icon width={18} aria-hidden />,
      onClick: () => void navigate(addressOf(path)),
    }),
  );
  return (
    <Spotlight
      actions={actions}
      onSpotlightClose={onClose}
      shortcut={null}
      nothingFound="Nothing is called that"
      highlightQuery
      searchProps={{ leftSection: <MagnifyingGlassIcon width={18} />, placeholder: "Go to a page", "aria-label": "Go to a page" }}
    />
  );
}
