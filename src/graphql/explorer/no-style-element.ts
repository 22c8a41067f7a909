/**
 * Replaces `react-style-singleton`: Radix's menus and dialogs prevent the page behind them from scrolling with a style element, which
 * the page's policy forbids. This page does not scroll, so it is not needed.
 */
export const styleSingleton = () => () => null;
