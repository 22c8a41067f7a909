/** Documents that the explorer opens with, each in a tab of its own. */
import modelsWithPrices from "./examples/models-with-prices.graphql";
import streamedChat from "./examples/streamed-chat.graphql";
import whoAmI from "./examples/who-am-i.graphql";

export interface Example {
  readonly title: string;
  readonly query: string;
}

export const EXAMPLES: readonly Example[] = [
  { title: "Who am I, and what can I spend?", query: whoAmI },
  { title: "A streamed chat", query: streamedChat },
  { title: "Models with prices", query: modelsWithPrices },
];
