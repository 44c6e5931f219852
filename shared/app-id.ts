/** Reverse DNS, as desktop entries, Wayland's app id and bundle ids want it: the app is one to the desktop everywhere. */
export const APP_ID = 'io.github.vram-landlord.VramLandlord';
