/** The gateway's version, as package.json states it. */
export const VERSION = "0.3.0";
