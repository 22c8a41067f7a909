/**
 * In place of `react-style-singleton`: Radix's menus and dialogs keep the page behind them from scrolling by a style element, which the
 * page's policy forbids. This page does not scroll, so there is nothing to keep.
 */
export const styleSingleton = () => () => null;
