# writes names on labels
import sys
from PIL import Image, ImageDraw, ImageFont
def draw_label(font, n):
    image = Image.new("RGB", (120, 30), "white")
    ImageDraw.Draw(image).text((2, 2), "label %d" % n, font=font, fill="black")
    return image.size[0]
def main():
    font = ImageFont.load_default()
    print(sum(draw_label(font, n) for n in range(int(sys.argv[1]))))
main()
